/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of the HTTP server: /metrics, /healthz, /readyz, /debug/pprof/. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "agent/internal/state.h"
#include "pull/request.h"
#include "agent/internal/usage.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "bpf/sampler.h"
#include "loss/loss.h"
#include "pipeline/budget.h"
#include "pipeline/collector.h"
#include "opener/opener.h"

/* ---- /metrics ---- */

static void set_losses(const struct agent *a)
{
	struct loss_account l;

	profiler_account(&a->sampling.profiler, &l);
	for (uint32_t i = 0; i < l.n; i++) {
		const struct loss_count *c = &l.counts[i];

		if (c->stage == LOSS_TICK)
			metric_set("samples_lost", "Samples due that were not recorded.",
				   METRIC_LABELS("reason", c->text), (double)c->n);
		else if (c->stage == LOSS_NOWHERE || (c->stage == LOSS_STACK && c->n))
			metric_set("samples",
				   "Samples recorded: complete, or truncated for a reason.",
				   METRIC_LABELS("result", c->text), (double)c->n);
	}
}

static void set_processes(const struct profiler *p)
{
	struct pipeline_stats s;

	pipeline_stats(p->pipeline, &s);
	const struct metric_gauge gauges[] = {
		{"files", "Files that profiled processes map.", s.files},
		{"files_refused", "Files that profiled processes map and that cannot be read.",
		 s.refused},
		{"processes_followed",
		 "Processes whose mappings are known, including those that ended seconds ago.",
		 (double)s.processes},
		{"files_unreadable", "Files that could not be opened, known by their path only.",
		 s.unreadable},
		{"mappings", "Mappings that are known of all processes.", (double)s.mappings},
		{"mappings_limit", "Maximum number of mappings that are known.", BUDGET_MAPPINGS},
		{"processes_paused_total",
		 "Total number of times that a process mapped more code, or more often, than is "
		 "followed.",
		 (double)s.paused},
	};
	metric_set_all(gauges, sizeof(gauges) / sizeof(*gauges));
}

static void set_made(const struct made_counts *c)
{
	const struct metric_gauge gauges[] = {
		{"made_code_regions", "Memory with code made at run time that is followed.",
		 (double)c->regions},
		{"made_code_bytes", "Size in bytes of that code and its unwind tables.",
		 (double)c->bytes},
		{"made_code_readings_total",
		 "Total number of times that code made at run time was read.", (double)c->readings},
		{"made_code_changed_total",
		 "Total number of times that it was read and was other code than before.",
		 (double)c->changed},
		{"made_code_failed_total",
		 "Total number of times that code made at run time was not read, or has no table.",
		 (double)c->failed},
	};
	metric_set_all(gauges, sizeof(gauges) / sizeof(*gauges));
}

static void set_sampling(const struct profiler *p)
{
	struct perf_stream_counts counts;
	struct pipeline_stats s;

	pipeline_stats(p->pipeline, &s);
	perf_stream_counts(p->stream, &counts);
	set_made(&s.made);
	const struct metric_gauge gauges[] = {
		{"records_invalid_total",
		 "Total number of records of the BPF sampler of an unknown kind or a wrong size.",
		 (double)counts.invalid},
		{"throttled_total",
		 "Total number of times that the kernel stopped sampling for a while.",
		 (double)counts.throttled},
		{"samples_guessed", "Complete samples with a guessed frame.", (double)s.guessed},
		{"samples_unselected", "Samples dropped because their process is not profiled.",
		 (double)s.unrouted},
		{"samples_waiting", "Samples whose unwind tables are being made.",
		 (double)s.waiting},
		{"samples_waiting_bytes", "Size in bytes of the stack copies of waiting samples.",
		 (double)s.waiting_bytes},
		{"emissions_lost_total", "Total number of lost emissions of language unwinders.",
		 (double)s.lost_emissions},
		{"code_bytes",
		 "Memory in bytes for claims, words and emissions of language unwinders.",
		 (double)s.code_bytes},
		{"collected_bytes",
		 "Memory in bytes of the samples of all windows that are not delivered yet.",
		 (double)collector_bytes()},
		{"events", "Open perf events.", (double)perf_stream_events(p->stream)},
		{"symbol_bytes", "Memory in bytes of symbols kept for further windows.",
		 (double)symbolizer_bytes(p->symbolizer)},
	};
	metric_set_all(gauges, sizeof(gauges) / sizeof(*gauges));
}

static void set_bpf(struct bpf_sampler *bpf)
{
	struct bpf_sampler_stats b;

	if (!bpf)
		return;
	bpf_sampler_stats(bpf, &b);
	for (uint32_t i = 0; i < TICK_RESULT_COUNT; i++)
		metric_set("kernel_ticks", "Ticks that the BPF sampler handled, by result.",
			   METRIC_LABELS("result", tick_result_texts[i]), (double)b.ticks[i]);
	const struct metric_gauge gauges[] = {
		{"kernel_table_bytes", "Size in bytes of the unwind tables in the kernel.",
		 (double)b.table_bytes},
		{"kernel_table_bytes_limit",
		 "Maximum size in bytes of the unwind tables in the kernel.", (double)b.table_cap},
		{"kernel_table_pages_loaded_total",
		 "Total number of pages of unwind tables that were loaded on demand.",
		 (double)b.pages.loaded},
		{"kernel_table_pages_reloaded_total",
		 "Total number of these pages that had been evicted before.",
		 (double)b.pages.reloaded},
		{"kernel_table_pages_refused_total",
		 "Total number of pages of unwind tables that were not loaded because too many "
		 "were.",
		 (double)b.pages.refused},
		{"kernel_table_pages_remembered_total",
		 "Total number of pages of unwind tables that were loaded because an earlier run "
		 "has used them.",
		 (double)b.pages.remembered},
		{"kernel_map_chunks", "Map chunks in use.", b.chunks},
		{"kernel_map_chunks_limit", "Maximum number of map chunks.", b.chunks_cap},
		{"kernel_unfollowed_total",
		 "Total number of children for whose rate the kernel had no room when they were "
		 "forked.",
		 b.unfollowed},
	};
	metric_set_all(gauges, sizeof(gauges) / sizeof(*gauges));
}

static void set_agent(const struct agent *a)
{
	uint32_t profiled, n = decisions_processes(a->sampling.decisions, &profiled);
	const struct metric_gauge gauges[] = {
		{"processes", "Processes that run, without kernel threads.", n},
		{"processes_profiled", "Processes that run and are profiled.", profiled},
		{"targets", "Targets of all discovery instances.",
		 targets_count(a->sampling.targets)},
		{"label_text_bytes", "Bytes of label texts of targets and processes.",
		 (double)targets_text_bytes(a->sampling.targets)},
		{"paused", "Whether sampling is paused.", a->sampling.paused_ns != 0},
		{"plan_generation", "Number of plans that have run.", a->instances.generation},
		{"lua_memory_bytes", "Memory in bytes of the script's Lua state.",
		 (double)lua_policy_memory(a->instances.plan)},
		{"resident_bytes", "Resident memory of the agent in bytes.",
		 (double)usage_resident_bytes()},
		{"heap_bytes", "Memory in bytes that the agent has allocated and not freed.",
		 (double)usage_heap_bytes()},
		{"uptime_seconds", "Time in seconds since the start of the agent.",
		 (double)(clock_now() - a->start_ns) / 1e9},
	};
	static const char cpu_help[] = "CPU time in seconds of the agent, its workers, and, with a "
				       "budget, its BPF programs.";
	struct usage_cpu cpu;

	metric_set_all(gauges, sizeof(gauges) / sizeof(*gauges));
	metric_set("build_info", "A metric with the value 1, labelled with the version.",
		   METRIC_LABELS("version", FUSEE_VERSION), 1);
	usage_cpu(&a->sampling.profiler, &cpu);
	metric_set("cpu_seconds", cpu_help, METRIC_LABELS("process", "agent"), cpu.agent);
	metric_set("cpu_seconds", cpu_help, METRIC_LABELS("process", "workers"), cpu.workers);
	if (a->budget.limit > 0 && a->sampling.profiler.bpf)
		metric_set("cpu_seconds", cpu_help, METRIC_LABELS("process", "bpf"), cpu.bpf);
}

static void set_budget(const struct cpu_budget *b)
{
	const struct metric_gauge gauges[] = {
		{"budget_cpus", "What the agent may use of a CPU; 0: without limit.", b->limit},
		{"budget_used_cpus",
		 "What the agent used of a CPU in the last minute, if it has a budget.",
		 cpu_budget_used(b)},
		{"rates_share",
		 "Share of the samples due by the targets' rates that the budget allows.",
		 cpu_budget_share(b)},
	};

	metric_set_all(gauges, sizeof(gauges) / sizeof(*gauges));
}

static int get_metrics(void *arg, struct buf *body)
{
	const struct agent *a = arg;

	set_losses(a);
	set_sampling(&a->sampling.profiler);
	set_processes(&a->sampling.profiler);
	set_bpf(a->sampling.profiler.bpf);
	opener_metrics(worker_opener(a->sampling.profiler.worker));
	if (a->sampling.allocators)
		allocators_metrics(a->sampling.allocators);
	discoveries_metrics(a->sampling.discoveries);
	set_agent(a);
	set_budget(&a->budget);
	hooks_metrics(a->sampling.hooks);
	return metrics_text(body) ? 503 : 200;
}

/* ---- the other pages ---- */

static int get_health(void *arg, struct buf *body)
{
	(void)arg;
	buf_str(body, "ok\n");
	return 200;
}

static int not_ready(struct buf *body, const char *why)
{
	buf_printf(body, "not ready: %s\n", why);
	return 503;
}

static int get_ready(void *arg, struct buf *body)
{
	const struct agent *a = arg;
	const struct plan *plan = a->instances.plan;
	bool ready = true;

	if (a->stop_ns)
		return not_ready(body, "the agent is ending");
	if (!discoveries_synced(a->sampling.discoveries))
		return not_ready(body, "discovery has not looked at everything yet");
	for (uint32_t i = 0; i < plan->nsinks; i++) {
		const char *why = sink_window_problem(a->instances.windows[i], clock_now());

		if (!why)
			continue;
		ready = false;
		buf_printf(body, "not ready: %s: %s\n", plan->sinks[i]->name, why);
	}
	if (ready)
		buf_str(body, "ready\n");
	return ready ? 200 : 503;
}

static int get_pprof(void *arg, struct buf *body)
{
	const struct plan *plan = ((const struct agent *)arg)->instances.plan;

	if (!plan->pulls.served) {
		buf_str(body, "Profiles are not served: metrics { pull = true } of the script "
			      "serves them\n");
		return 404;
	}
	buf_str(body,
		"<!DOCTYPE html><title>fusee</title><h1>Profiles of this machine</h1>\n"
		"<p><a "
		"href=\"/debug/pprof/profile?seconds=30\">/debug/pprof/profile?seconds=30</a>: "
		"CPU time of all that is profiled, as pprof.\n<p>?process=NAME, ?unit=UNIT and any "
		"other "
		"label select; several are joined by and. <code>fusee ctl targets</code> lists the "
		"labels.\n");
	buf_printf(body, "<p>At most %d at once, of 1 to %u seconds.\n", (int)plan->pulls.max,
		   PULL_MAX_SECONDS);
	return 200;
}

static void begin_profile(void *arg, struct http_request *request, char *query)
{
	pulls_begin(((const struct agent *)arg)->pulls, request, query);
}

static const struct http_page pages[] = {
	{"/metrics", "text/plain; version=0.0.4", get_metrics, NULL},
	{"/healthz", "text/plain", get_health, NULL},
	{"/readyz", "text/plain", get_ready, NULL},
	{"/debug/pprof", "text/html", get_pprof, NULL},
	{"/debug/pprof/", "text/html", get_pprof, NULL},
	{"/debug/pprof/profile", NULL, NULL, begin_profile},
	{0},
};

static const struct fusee_table *get_hosts(void *arg)
{
	return &((const struct agent *)arg)->instances.plan->pulls.hosts;
}

int pages_open(struct agent *a)
{
	const struct http_options o = {
		.listen = a->instances.plan->listen, .pages = pages, .hosts = get_hosts, .arg = a};
	char *text = NULL;
	int r = *o.listen ? pulls_new(&a->pulls, &a->instances) : 0;

	if (!r && *o.listen)
		r = http_new(&a->http, a->loop, &o, &text);

	if (r)
		log_error("%s", text ? text : strerror(-r));
	free(text);
	return r ? EX_UNAVAILABLE : 0;
}
