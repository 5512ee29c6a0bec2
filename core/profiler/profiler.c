/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/profiler.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "bpf/rates.h"
#include "bpf/sampler_events.h"
#include "events/probe.h"
#include "unwind/claims.h"

uint64_t profiler_period_ns(double hz)
{
	return (uint64_t)(1e9 / hz + 0.5);
}

/* ---- opening ---- */

static int open_worker(struct profiler *p, const struct profiler_options *o)
{
	const struct worker_options worker = {
		.cache_dir = o->cache_dir,
		.plugin_dir = o->plugin_dir,
		.memory_limit = o->worker_bytes,
		.unwinders = &p->unwinders,
		/* Who may look into his own processes only can keep but himself waiting. */
		.opener = probe_caps() >> CAP_SYS_PTRACE & 1,
	};
	int r = plugin_set_open(o->plugin_dir, &claims_host, o->unwinders, &p->unwinders);

	if (r == -ENOMEM) {
		log_error("cannot load unwinders: %s", strerror(-r));
		return EX_OSERR;
	}
	if (r || !p->unwinders.n) {
		log_error("no unwinders found in %s: is the installation of fusee complete?",
			  o->plugin_dir);
		return EX_SOFTWARE;
	}
	r = worker_new(&p->worker, &worker);
	if (r)
		log_error("cannot start the worker process: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

static int open_bpf(struct profiler *p, const struct profiler_options *o)
{
	const struct bpf_sampler_options bpf = {.table_bytes = o->table_bytes};
	int r = o->kind ? 0
			: bpf_sampler_choose(&p->bpf, o->sampler, &p->unwinders, &bpf, &p->no_bpf);

	if (!r)
		return 0;
	log_error("cannot use the sampler 'bpf': %s", p->no_bpf ? p->no_bpf : strerror(-r));
	return r == -EPERM || r == -EACCES ? EX_NOPERM : EX_UNAVAILABLE;
}

static int explain_refusal(const struct profiler_options *o, int error)
{
	const struct probe_target target = {
		.pid = o->npids && !o->held ? o->pids[0] : 0,
		.all = o->all || o->dynamic,
		.again = o->command_line,
	};
	char *why = probe_explain(error, &target);

	log_error("%s", why ? why : strerror(-error));
	free(why);
	if (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV)
		return EX_UNAVAILABLE;
	return error == -ESRCH ? EX_NOINPUT : EX_NOPERM;
}

/* Processes that the CPUs' events sample are selected in the kernel before there is an event. */
static int open_tree(struct profiler *p)
{
	uint32_t added = 0;
	int r = process_tree_new(&p->tree, p->bpf);

	for (uint32_t i = 0; !r && i < p->npids; i++)
		added += !process_tree_add(p->tree, p->pids[i], p->held);
	return r ? r : added < p->npids ? -E2BIG : 0;
}

static void close_tree(struct profiler *p)
{
	process_tree_free(p->tree);
	p->tree = NULL;
	if (p->bpf)
		bpf_rates_set_default(p->bpf, BPF_RATE_ANY);
}

static int open_cpus(struct profiler *p, const struct perf_stream_options *o)
{
	struct perf_stream_options stream = *o;
	int r = open_tree(p);

	stream.cpus = true;
	if (!r)
		r = perf_stream_open(&p->stream, &stream);
	if (r)
		close_tree(p);
	return r;
}

static int open_stream(struct profiler *p, const struct profiler_options *o)
{
	struct perf_stream_options stream = {
		.pids = o->pids,
		.npids = o->npids,
		.all = o->all,
		.dynamic = o->dynamic,
		.on_exec = o->held,
		.kind = o->kind,
		.period_ns = o->period_ns,
		.stack_bytes = o->stack_bytes,
		.ring_bytes = o->ring_bytes,
		.kernel = o->kernel,
		.bpf = p->bpf,
	};
	int r = -ENOTSUP;

	if (p->bpf && o->npids && bpf_rates_work(p->bpf))
		r = open_cpus(p, &stream);
	if (r && r != -ESRCH)
		r = perf_stream_open(&p->stream, &stream);
	/* The programs load, but the kernel refuses the events that they need. */
	if (r && p->bpf && o->sampler == SAMPLER_AUTO) {
		p->no_bpf = strdup(strerror(-r));
		bpf_sampler_close(p->bpf);
		p->bpf = stream.bpf = NULL;
		r = perf_stream_open(&p->stream, &stream);
	}
	if (!r && o->kind && o->kind->in_kernel && !perf_stream_kernel(p->stream)) {
		log_error("'%s' happens in the kernel, which this user may not sample: run fusee "
			  "with sudo, or sudo sysctl kernel.perf_event_paranoid=%d",
			  o->kind->name, o->kind->type == PERF_TYPE_TRACEPOINT ? -1 : 1);
		return EX_NOPERM;
	}
	return r ? explain_refusal(o, r) : 0;
}

static bool tree_has(void *arg, pid_t pid)
{
	return process_tree_has(((struct profiler *)arg)->tree, pid);
}

static void tree_forked(void *arg, pid_t parent, pid_t child)
{
	process_tree_forked(((struct profiler *)arg)->tree, parent, child);
}

static bool tree_route(void *arg, const struct sample *s, struct pipeline_route *route)
{
	const struct profiler *p = arg;

	return p->route(p->route_arg, s, route);
}

static void scan_added(void *arg, pid_t pid)
{
	pipeline_scan(((struct profiler *)arg)->pipeline, pid);
}

static void tree_lost(void *arg)
{
	process_tree_reread(((struct profiler *)arg)->tree, scan_added, arg);
}

static int open_pipeline(struct profiler *p, const struct profiler_options *o)
{
	struct pipeline_options pipeline = {
		.threads = o->threads,
		.route = o->route,
		.selected = o->selected,
		.arg = o->arg,
		.waiting_bytes = o->waiting_bytes,
		.bpf = p->bpf,
		.background = o->dynamic,
	};
	int r;

	if (p->tree) {
		pipeline.selected = tree_has;
		pipeline.forked = tree_forked;
		pipeline.lost = tree_lost;
		pipeline.route = p->route ? tree_route : NULL;
		pipeline.arg = p;
	}
	r = pipeline_new(&p->pipeline, &pipeline, p->worker, &p->unwinders);
	if (!r)
		r = symbolizer_new(&p->symbolizer, pipeline_files(p->pipeline), p->worker,
				   o->inlines);
	if (r)
		log_error("cannot start sampling: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

int profiler_open(struct profiler *p, const struct profiler_options *o)
{
	int r;

	*p = (struct profiler){.pids = o->pids,
			       .npids = o->npids,
			       .dynamic = o->dynamic,
			       .held = o->held,
			       .route = o->route,
			       .route_arg = o->arg};
	r = open_worker(p, o);
	if (!r && !o->no_events)
		r = open_bpf(p, o);
	if (!r && !o->no_events)
		r = open_stream(p, o);
	return r ? r : open_pipeline(p, o);
}

void profiler_close(struct profiler *p)
{
	perf_stream_close(p->stream);
	worker_stop(p->worker);
	symbolizer_free(p->symbolizer);
	pipeline_free(p->pipeline);
	process_tree_free(p->tree);
	bpf_sampler_close(p->bpf);
	free(p->no_bpf);
	plugin_set_close(&p->unwinders);
	*p = (struct profiler){0};
}

int profiler_follow_group(struct profiler *p, const char *dir)
{
	return p->tree ? process_tree_follow_group(p->tree, dir) : -ENOTSUP;
}

/* ---- sampling ---- */

void profiler_prepare(struct profiler *p)
{
	if (p->held)
		return;
	for (uint32_t i = 0; i < p->npids; i++)
		pipeline_scan(p->pipeline, p->pids[i]);
	worker_wait(p->worker);
	/* Processes run already: what they might start later is not worth the delay. */
	pipeline_update_all(p->pipeline, false);
	for (uint32_t i = 0; i < p->npids; i++)
		perf_stream_add_own(p->stream, p->pids[i]);
}

void profiler_prepare_held(struct profiler *p)
{
	bool all;

	perf_stream_drain(p->stream, pipeline_handlers(p->pipeline), true);
	pipeline_scan(p->pipeline, p->pids[0]);
	worker_wait(p->worker);
	pipeline_retry(p->pipeline);
	/* What the command starts may need the program of any language at once. */
	all = pipeline_may_start(p->pipeline, p->pids[0]);
	log_debug("the command waits for the unwinders of %s",
		  all ? "all languages: it may start other programs" : "its own languages only");
	/* The first call publishes the mappings, the second confirms them. */
	for (int i = 0; i < 2; i++)
		pipeline_update_all(p->pipeline, all);
	perf_stream_add_own(p->stream, p->pids[0]);
}

int profiler_enable(struct profiler *p)
{
	int r = perf_stream_enable(p->stream);
	uint64_t now = clock_now();

	if (r || p->dynamic || p->held)
		return r;
	/* Mappings made since profiler_prepare(); later mappings come as records. */
	for (uint32_t i = 0; i < p->npids; i++)
		pipeline_scan(p->pipeline, p->pids[i]);
	if (p->tree) /* what the processes started until the events recorded it */
		tree_lost(p);
	pipeline_update(p->pipeline, now);
	return 0;
}

int profiler_disable(struct profiler *p)
{
	return perf_stream_disable(p->stream);
}

void profiler_drain(struct profiler *p, uint64_t until_ns)
{
	uint64_t began = clock_now();

	if (p->tree)
		process_tree_poll(p->tree, began);
	perf_stream_drain_until(p->stream, pipeline_handlers(p->pipeline), until_ns);
	/* What is published for the first time is to be of this moment: the kernel does not note
	 * that memory is given out where it knows no code, so stacks over a library that was
	 * replaced since would be discarded. */
	if (pipeline_has_unpublished(p->pipeline) && !perf_stream_is_behind(p->stream))
		perf_stream_drain_now(p->stream, pipeline_handlers(p->pipeline), until_ns);
	pipeline_update(p->pipeline, perf_stream_horizon(p->stream));
	if (p->bpf)
		bpf_sampler_woke(p->bpf, clock_now() - began);
	pipeline_retry(p->pipeline);
}

void profiler_dispatch(struct profiler *p)
{
	worker_dispatch(p->worker);
	pipeline_retry(p->pipeline);
}

void profiler_take_mappings(struct profiler *p)
{
	pipeline_take_mappings(p->pipeline);
	/* The first call publishes the mappings, the second confirms them. */
	for (int i = 0; i < 2; i++)
		pipeline_update(p->pipeline, perf_stream_horizon(p->stream));
	pipeline_retry(p->pipeline);
}

void profiler_stop(struct profiler *p)
{
	profiler_disable(p);
	perf_stream_drain(p->stream, pipeline_handlers(p->pipeline), true);
}

/* ---- losses ---- */

static void add_lost(struct loss_account *a, const struct perf_stream_counts *before,
		     const struct perf_stream_counts *after)
{
	fusee_assert(after->ring_full >= before->ring_full && after->skipped >= before->skipped &&
		     after->unfinished >= before->unfinished);
	loss_account_add(a, LOSS_RING_FULL, after->ring_full - before->ring_full);
	loss_account_add(a, LOSS_TIMER_SKIPPED, after->skipped - before->skipped);
	loss_account_add(a, LOSS_UNFINISHED, after->unfinished - before->unfinished);
}

void profiler_account(const struct profiler *p, struct loss_account *a)
{
	struct perf_stream_counts counts;
	struct pipeline_stats stats;

	pipeline_stats(p->pipeline, &stats);
	perf_stream_counts(p->stream, &counts);
	*a = *stats.account;
	add_lost(a, &(struct perf_stream_counts){0}, &counts);
}

/* The samples of a window: those that its collector has, and those that were lost between two reads
 * of the perf stream. */
static void account_window(const struct profiler *p, const struct collector *c,
			   const struct perf_stream_counts *before,
			   const struct perf_stream_counts *after, struct loss_account *a)
{
	struct pipeline_stats stats;

	pipeline_stats(p->pipeline, &stats);
	*a = *stats.account;
	loss_account_clear(a);
	add_lost(a, before, after);
	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;

		loss_account_add(a, k->reason, c->sums[i].count);
	}
}

/* ---- windows ---- */

int profiler_open_window(struct profiler *p, uint32_t *slot)
{
	struct collector *c;
	uint32_t i = 0;
	int r;

	while (i < PIPELINE_SLOTS && pipeline_collector(p->pipeline, i))
		i++;
	if (i == PIPELINE_SLOTS)
		return -ENOSPC;
	r = collector_new(&c);
	if (r)
		return r;
	perf_stream_counts(p->stream, &p->window_start[i]);
	pipeline_set_collector(p->pipeline, i, c);
	*slot = i;
	return 0;
}

void profiler_end_window(struct profiler *p, uint32_t slot)
{
	p->window_end_ns[slot] = clock_now();
	perf_stream_counts(p->stream, &p->window_end[slot]);
}

int profiler_close_window(struct profiler *p, uint32_t slot, bool more, struct profiler_window *w)
{
	struct collector *next = NULL;
	int r = more ? collector_new(&next) : 0;

	if (r)
		return r;
	fusee_assert(slot < PIPELINE_SLOTS);
	if (!p->window_end_ns[slot])
		profiler_end_window(p, slot);
	*w = (struct profiler_window){.end_ns = p->window_end_ns[slot]};
	p->window_end_ns[slot] = 0;
	w->collector = pipeline_set_collector(p->pipeline, slot, next);
	/* An empty window makes no profile: its losses count for the next window. */
	if (w->collector && (w->collector->count || !more)) {
		account_window(p, w->collector, &p->window_start[slot], &p->window_end[slot],
			       &w->losses);
		p->window_start[slot] = p->window_end[slot];
	}
	return 0;
}

/* ---- memory ---- */

static void drop_symbols(void *arg, uint32_t file)
{
	symbolizer_drop_file(arg, file);
}

void profiler_sweep(struct profiler *p, const struct collector *const *keep, uint32_t n,
		    uint64_t symbol_bytes)
{
	const struct pipeline_sweep sweep = {
		.keep = keep, .n = n, .forget = drop_symbols, .arg = p->symbolizer};

	pipeline_sweep(p->pipeline, &sweep);
	if (p->tree)
		process_tree_sweep(p->tree);
	symbolizer_trim(p->symbolizer, symbol_bytes);
}
