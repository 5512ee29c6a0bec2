/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent says of itself: the control socket's answers, /metrics, /healthz and /readyz. */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "agent/agent_state.h"
#include "net/notify.h"
#include "bpf/sampler.h"

#define FLUSH_NS 30000000000u
#define BLOCKED_NS 5000000000u /* a sink whose call takes longer is reported as blocked */

static double cpu_seconds(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static uint64_t rss_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long size, rss = 0;

	if (f) {
		if (fscanf(f, "%lu %lu", &size, &rss) != 2)
			rss = 0;
		fclose(f);
	}
	return rss * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What the allocator has given out; what it keeps beyond that depends on how it was given back. */
static uint64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* ---- status ---- */

static void add_losses(const struct agent *a, struct buf *b)
{
	struct loss_account l;

	losses_read(&l, a->profiler.pipeline, a->profiler.stream);
	buf_printf(b,
		   "\"samples_due\": %llu, \"samples\": %llu, \"complete\": %llu, \"truncated\": ",
		   (unsigned long long)l.due, (unsigned long long)(l.due - l.lost),
		   (unsigned long long)l.complete);
	loss_account_json(&l, LOSS_STACK, b);
	buf_str(b, ", \"lost\": ");
	loss_account_json(&l, LOSS_TICK, b);
}

static const char *sink_state(const struct delivery_stats *s)
{
	if (s->blocked_since && clock_now() - s->blocked_since > BLOCKED_NS)
		return "blocked";
	return *s->last_error ? "failing" : "ok";
}

static void add_sink(struct buf *b, const struct sink_window *w)
{
	struct delivery_stats s;

	delivery_stats(sink_window_delivery(w), &s);
	buf_str(b, "{\"name\": ");
	json_text(b, sink_window_plan(w)->name);
	buf_printf(b, ", \"state\": \"%s\", \"delivered\": %llu, \"retried\": %llu, \"lost\": ",
		   sink_state(&s), (unsigned long long)s.delivered, (unsigned long long)s.retried);
	loss_account_json(&s.losses, LOSS_DELIVERY, b);
	buf_printf(b, ", \"queued\": %llu, \"queued_bytes\": %llu, \"last_error\": ",
		   (unsigned long long)s.queued, (unsigned long long)s.queued_bytes);
	json_text(b, s.last_error);
	buf_str(b, "}");
}

static void add_instances(const struct agent *a, struct buf *b)
{
	buf_str(b, ", \"sinks\": [");
	for (uint32_t i = 0; i < a->plan->nsinks; i++) {
		buf_str(b, i ? ", " : "");
		add_sink(b, a->windows[i]);
	}
	buf_str(b, "], \"discoveries\": [");
	for (uint32_t i = 0; i < a->nsources; i++) {
		buf_printf(b, "%s{\"name\": ", i ? ", " : "");
		json_text(b, a->sources[i].plan->name);
		buf_printf(b, ", \"targets\": %u, \"synced\": %s, \"error\": ",
			   discovery_targets(a->sources[i].discovery),
			   discovery_synced(a->sources[i].discovery) ? "true" : "false");
		json_text(b, discovery_error(a->sources[i].discovery));
		buf_str(b, "}");
	}
	buf_str(b, "]");
}

static void answer(struct control_reply *reply, struct buf *b)
{
	buf_add(b, "", 1);
	control_answer(reply, b->error ? "" : b->p, b->error ? "out of memory" : NULL);
	buf_fini(b);
}

static void on_status(void *arg, const char *word, struct control_reply *reply)
{
	struct agent *a = arg;
	uint32_t profiled, n = decisions_processes(a->decisions, &profiled);
	struct buf b = {0};

	(void)word;
	buf_printf(&b,
		   "\"version\": \"%s\", \"pid\": %d, \"uptime_s\": %.1f, \"state\": \"%s\", "
		   "\"sampler\": \"%s\", ",
		   FUSEE_VERSION, (int)getpid(), (double)(clock_now() - a->start_ns) / 1e9,
		   a->paused ? "paused" : "running", a->profiler.bpf ? "bpf" : "snapshot");
	buf_str(&b, "\"config\": ");
	json_text(&b, a->plan->path ? a->plan->path : "");
	buf_printf(&b,
		   ", \"generation\": %u, \"last_reload\": {\"ok\": %s, \"error\": ", a->generation,
		   a->reload_failed ? "false" : "true");
	json_text(&b, a->reload_failed && !a->reload_error ? "out of memory" : a->reload_error);
	buf_str(&b, "}, ");
	add_losses(a, &b);
	buf_printf(&b, ", \"processes\": %u, \"profiled\": %u", n, profiled);
	add_instances(a, &b);
	buf_printf(&b, ", \"cpu_s\": %.3f, \"rss_bytes\": %llu", cpu_seconds(RUSAGE_SELF),
		   (unsigned long long)rss_bytes());
	answer(reply, &b);
}

/* ---- targets ---- */

struct listing {
	const struct agent *a;
	struct buf *b;
	bool first;
};

static void add_sinks_of(const struct agent *a, struct buf *b, uint64_t sinks)
{
	bool first = true;

	for (; sinks; sinks &= sinks - 1) {
		buf_str(b, first ? "" : ", ");
		json_text(b, a->plan->sinks[__builtin_ctzll(sinks)]->name);
		first = false;
	}
}

static void add_target(void *arg, const struct decision *d)
{
	struct listing *l = arg;

	if (!d->processes)
		return;
	buf_printf(l->b, "%s{\"labels\": {", l->first ? "" : ", ");
	l->first = false;
	for (uint32_t i = 0; i < d->nlabels; i++) {
		buf_str(l->b, i ? ", " : "");
		json_string(l->b, d->labels[i].key.p, d->labels[i].key.len);
		buf_str(l->b, ": ");
		json_string(l->b, d->labels[i].str.p, d->labels[i].str.len);
	}
	buf_printf(l->b, "}, \"processes\": %u, \"profile\": %s, \"hz\": %g, \"sinks\": [",
		   d->processes, d->profile ? "true" : "false", d->hz);
	add_sinks_of(l->a, l->b, d->sinks);
	buf_str(l->b, "]}");
}

static void on_targets(void *arg, const char *word, struct control_reply *reply)
{
	struct agent *a = arg;
	struct buf b = {0};
	struct listing l = {a, &b, true};

	(void)word;
	buf_str(&b, "\"targets\": [");
	decisions_each_set(a->decisions, add_target, &l);
	buf_str(&b, "]");
	answer(reply, &b);
}

/* ---- what changes something ---- */

static void on_reload(void *arg, const char *word, struct control_reply *reply)
{
	char *error;
	int r;

	(void)word;
	notify_reloading();
	r = reload_run(arg, &error);
	notify_send("READY=1");
	if (r)
		log_error("reload failed, the running plan stays:\n%s",
			  error ? error : strerror(-r));
	else
		log_info("reloaded");
	control_answer(reply, "", r ? (error ? error : strerror(-r)) : NULL);
	free(error);
}

static void on_pause(void *arg, const char *word, struct control_reply *reply)
{
	(void)word;
	agent_sampling_pause(arg, true);
	log_info("sampling is paused");
	control_answer(reply, "\"state\": \"paused\"", NULL);
}

static void on_resume(void *arg, const char *word, struct control_reply *reply)
{
	(void)word;
	agent_sampling_pause(arg, false);
	log_info("sampling goes on");
	control_answer(reply, "\"state\": \"running\"", NULL);
}

/* ---- flush: windows are closed, named, and everything that waits is tried ---- */

enum { NOT_ASKED, ASKED, TAKEN, NOT_TAKEN };

struct flushing {
	struct flushing *next;
	struct agent *a;
	struct control_reply *reply; /* NULL: answered */
	struct loop_timer *timer;
	uint64_t deadline_ns;
	bool asked;
	_Atomic int sinks[PLAN_MAX_SINKS];
};

static void flush_free(struct flushing *f)
{
	struct flushing **at = &f->a->flushings;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	loop_timer_free(f->timer);
	free(f);
}

/* [a delivery's thread] */
static void flush_done(void *arg, int err)
{
	atomic_store((_Atomic int *)arg, err ? NOT_TAKEN : TAKEN);
}

static bool all_named(const struct agent *a)
{
	for (uint32_t i = 0; i < a->plan->nsinks; i++)
		if (!sink_window_is_idle(a->windows[i]))
			return false;
	return true;
}

static void flush_ask(struct flushing *f)
{
	struct agent *a = f->a;

	f->asked = true;
	for (uint32_t i = 0; i < a->plan->nsinks; i++) {
		f->sinks[i] = ASKED;
		delivery_flush(sink_window_delivery(a->windows[i]), f->deadline_ns, flush_done,
			       &f->sinks[i]);
	}
}

static void flush_answer(struct flushing *f)
{
	uint32_t failed = 0;
	char error[96];

	for (uint32_t i = 0; i < PLAN_MAX_SINKS; i++) {
		if (f->sinks[i] == ASKED)
			return;
		failed += f->sinks[i] == NOT_TAKEN;
	}
	snprintf(error, sizeof(error),
		 "%u sink%s could not take everything: fusee ctl status says why", failed,
		 failed == 1 ? "" : "s");
	control_answer(f->reply, "", failed ? error : NULL);
	flush_free(f);
}

/* Until all windows have their names, then until all sinks have answered. */
static void on_flushing(void *arg)
{
	struct flushing *f = arg;

	worker_dispatch(f->a->profiler.worker);
	if (!f->asked && (all_named(f->a) || clock_now() > f->deadline_ns))
		flush_ask(f);
	if (f->asked)
		flush_answer(f);
}

static void on_flush(void *arg, const char *word, struct control_reply *reply)
{
	struct agent *a = arg;
	struct flushing *f = calloc(1, sizeof(*f));

	(void)word;
	if (f)
		f->deadline_ns = clock_now() + FLUSH_NS;
	if (!f || loop_every(a->loop, 10000000, on_flushing, f, &f->timer)) {
		control_answer(reply, "", "out of memory");
		free(f);
		return;
	}
	f->a = a;
	f->reply = reply;
	f->next = a->flushings;
	a->flushings = f;
	agent_sampling_drain(a);
	for (uint32_t i = 0; i < a->plan->nsinks; i++)
		sink_window_close_window(a->windows[i]);
}

static void on_help(void *arg, const char *word, struct control_reply *reply)
{
	(void)arg;
	(void)word;
	control_answer(reply,
		       "\"commands\": [\"status\", \"targets\", \"reload\", \"pause\", "
		       "\"resume\", \"flush\", \"help\"]",
		       NULL);
}

/* ---- pages ---- */

static void set_losses(const struct agent *a)
{
	struct loss_account l;

	losses_read(&l, a->profiler.pipeline, a->profiler.stream);
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

static void set_sampling(const struct agent *a)
{
	struct pipeline_stats s;

	pipeline_stats(a->profiler.pipeline, &s);
	set_losses(a);
	metric_set("samples_guessed", "Complete samples with a guessed frame.", NULL,
		   (double)s.guessed);
	metric_set("samples_passed",
		   "Complete samples that show an interpreter without the program that it runs.",
		   NULL, (double)s.passed);
	metric_set("names_lost_total", "Pieces of what names languages' frames that nobody kept.",
		   NULL, (double)s.lost_names);
	metric_set("samples_unwanted", "Samples dropped unread, of processes not profiled.", NULL,
		   (double)s.unwanted);
	metric_set("files", "Files that profiled processes map.", NULL, (double)s.files);
	metric_set("files_refused", "Of them not readable.", NULL, (double)s.refused);
	metric_set("samples_waiting", "Samples whose unwind tables are still being made.", NULL,
		   (double)s.waiting);
	metric_set("samples_waiting_bytes", "Their copies.", NULL, (double)s.waiting_bytes);
	metric_set("lives", "Processes that are followed, those that ended a minute ago included.",
		   NULL, (double)s.lives);
	metric_set("events", "Open perf events.", NULL,
		   (double)perf_stream_events(a->profiler.stream));
	metric_set("names_bytes", "Names that are kept.", NULL,
		   (double)symbolizer_bytes(a->profiler.symbolizer));
}

static void set_bpf(const struct agent *a)
{
	struct bpf_sampler_stats b;

	if (!a->profiler.bpf)
		return;
	bpf_sampler_stats(a->profiler.bpf, &b);
	for (uint32_t i = 0; i < TICK_RESULT_COUNT; i++)
		metric_set("kernel_ticks", "Ticks by what the program in the kernel did with them.",
			   METRIC_LABELS("result", tick_result_texts[i]), (double)b.ticks[i]);
	metric_set("kernel_table_bytes", "Unwind tables in the kernel.", NULL,
		   (double)b.table_bytes);
	metric_set("kernel_table_bytes_limit", "Their cap.", NULL, (double)b.table_cap);
	metric_set("kernel_map_chunks", "Places of processes' mappings in the kernel, in use.",
		   NULL, b.chunks);
	metric_set("kernel_map_chunks_limit", "Their cap.", NULL, b.chunks_cap);
}

static void set_self(const struct agent *a)
{
	uint32_t profiled, n = decisions_processes(a->decisions, &profiled);

	metric_set("build_info", "This build.", METRIC_LABELS("version", FUSEE_VERSION), 1);
	metric_set("processes", "Processes, kernel threads left out.", NULL, n);
	metric_set("processes_profiled", "Profiled ones.", NULL, profiled);
	metric_set("targets", "Targets that discovery named.", NULL, targets_count(a->targets));
	metric_set("paused", "Sampling is paused.", NULL, a->paused);
	metric_set("plan_generation", "How many plans have been taken.", NULL, a->generation);
	metric_set("lua_memory_bytes", "Memory of the script's state.", NULL,
		   (double)lua_policy_memory(a->plan));
	metric_set("cpu_seconds", "CPU time of the agent.", METRIC_LABELS("process", "agent"),
		   cpu_seconds(RUSAGE_SELF));
	metric_set("cpu_seconds", "CPU time of the agent.", METRIC_LABELS("process", "workers"),
		   cpu_seconds(RUSAGE_CHILDREN));
	metric_set("resident_bytes", "Resident memory of the agent.", NULL, (double)rss_bytes());
	metric_set("heap_bytes", "Memory that the agent has allocated and not freed.", NULL,
		   (double)heap_bytes());
	metric_set("uptime_seconds", "Since its start.", NULL,
		   (double)(clock_now() - a->start_ns) / 1e9);
}

static int get_metrics(void *arg, struct buf *body)
{
	set_sampling(arg);
	set_bpf(arg);
	set_self(arg);
	return metrics_text(body) ? 503 : 200;
}

static int get_health(void *arg, struct buf *body)
{
	(void)arg;
	buf_str(body, "ok\n");
	return 200;
}

static int get_ready(void *arg, struct buf *body)
{
	const struct agent *a = arg;
	bool ready = discoveries_synced(a->discoveries) && !a->stop_ns;

	buf_str(body,
		ready ? "ready\n" : "not ready: discovery has not looked at everything yet\n");
	return ready ? 200 : 503;
}

/* ---- life ---- */

static void list(struct agent *a)
{
	const struct control_command commands[] = {
		{"status", on_status, a}, {"targets", on_targets, a}, {"reload", on_reload, a},
		{"pause", on_pause, a},   {"resume", on_resume, a},   {"flush", on_flush, a},
		{"help", on_help, a},
	};
	const struct http_page pages[] = {
		{"/metrics", "text/plain; version=0.0.4", get_metrics, a},
		{"/healthz", "text/plain", get_health, a},
		{"/readyz", "text/plain", get_ready, a},
	};

	memcpy(a->commands, commands, sizeof(commands));
	memcpy(a->pages, pages, sizeof(pages));
}

int status_open(struct agent *a)
{
	char *text = NULL;
	int r = 0;

	list(a);
	if (*a->plan->control)
		r = control_new(&a->control, a->loop, a->plan->control, a->commands);
	if (r == -EADDRINUSE)
		log_error("another agent answers at %s: end it, or name another control socket",
			  a->plan->control);
	else if (r)
		log_error("cannot make the control socket %s: %s", a->plan->control, strerror(-r));
	if (!r && *a->plan->listen) {
		r = http_new(&a->http, a->loop, a->plan->listen, a->pages, &text);
		if (r)
			log_error("%s", text ? text : strerror(-r));
		free(text);
	}
	return r ? EX_UNAVAILABLE : 0;
}

void status_close(struct agent *a)
{
	for (struct flushing *f = a->flushings; f; f = f->next) {
		control_answer(f->reply, "", "the agent ends");
		f->reply = NULL;
	}
	http_free(a->http);
	control_free(a->control);
}

void status_free(struct agent *a)
{
	while (a->flushings)
		flush_free(a->flushings);
}
