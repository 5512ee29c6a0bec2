/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/profiler.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "bpf/rates.h"
#include "bpf/sampler_events.h"
#include "events/probe.h"
#include "profiler/internal/account.h"
#include "profiler/internal/chooser.h"
#include "profiler/internal/hits.h"
#include "profiler/internal/prepare.h"
#include "stop/rights.h"
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
		.memory_limit = o->memory.worker,
		.unwinders = &p->unwinders,
		/* Without CAP_SYS_PTRACE only the user's own processes are read, and they can block
		 * only this user. */
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
	struct bpf_sampler_options bpf = {.table_bytes = o->table_bytes,
					  .choosers = &p->choosers,
					  .beside = o->choosers.beside,
					  .worker = p->worker};
	enum sampler_choice choice = o->sampler;
	int r = 0;

	hits_set_bpf(o, &bpf);
	if (p->choosers.n || bpf.probes || bpf.hooks)
		choice = SAMPLER_BPF;
	if ((!o->kind || p->choosers.n || bpf.probes) && choice != SAMPLER_STOP)
		r = bpf_sampler_choose(&p->bpf, choice, &p->unwinders, &bpf, &p->no_bpf);

	/* profiler_prepare() awaits those of processes that run, and has the others loaded after
	 * them */
	if (!r && p->bpf && (o->held || o->dynamic))
		bpf_sampler_load_languages(p->bpf, o->held ? o->command.text : NULL);
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

/* Selects the processes that the CPUs' events sample in the kernel, before there is an event. */
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

static bool is_one_alive(const struct profiler_options *o)
{
	for (uint32_t i = 0; i < o->npids; i++)
		if (!kill(o->pids[i], 0) || errno != ESRCH)
			return true;
	return false;
}

/* Which waits and hits are samples is decided in the kernel only, and no event is of a thread. */
static int open_waits(struct profiler *p, const struct profiler_options *o,
		      const struct perf_stream_options *stream)
{
	if (!o->npids && !o->dynamic)
		return perf_stream_open(&p->stream, stream);
	if (bpf_rates_work(p->bpf))
		return o->dynamic        ? perf_stream_open(&p->stream, stream)
		       : is_one_alive(o) ? open_cpus(p, stream)
					 : -ESRCH;
	log_error("a sampler needs the ids of processes that the kernel uses: run fusee "
		  "outside of the container");
	return EX_UNAVAILABLE;
}

static int open_stream(struct profiler *p, const struct profiler_options *o)
{
	struct perf_stream_options stream = {
		.pids = o->pids,
		.npids = o->npids,
		.all = o->all,
		.dynamic = o->dynamic,
		.on_exec = o->held,
		.kind = chooser_takes_all(o) ? NULL : o->kind,
		.waits = chooser_takes_all(o),
		.wait_periods = p->wait_periods,
		.period_ns = o->period_ns,
		.stack_bytes = o->stack_bytes,
		.ring_bytes = o->ring_bytes,
		.kernel = o->kernel,
		.bpf = p->bpf,
	};
	int r = -ENOTSUP;

	hits_set_stream(o, &stream);
	if (stream.waits || stream.wait_periods.n || stream.hit_period)
		return open_waits(p, o, &stream);
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
	return r;
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

/* Whether threads may be stopped: without BPF, stacks of languages can be taken only of stopped
 * threads. */
static bool may_stop(const struct profiler *p, const struct profiler_options *o)
{
	return !p->bpf && o->npids && !o->kind &&
	       (o->sampler == SAMPLER_AUTO || o->sampler == SAMPLER_STOP);
}

/* Drops samples of events for processes that are stopped for their samples. */
static bool stop_route(void *arg, const struct sample *s, struct pipeline_route *route)
{
	const struct profiler *p = arg;

	if (!s->memory && stop_sampler_has(p->stop, s->pid, s->time))
		return false;
	return !p->route || p->route(p->route_arg, s, route);
}

static void stop_forked(void *arg, pid_t parent, pid_t child)
{
	stop_sampler_forked(((struct profiler *)arg)->stop, parent, child);
}

static void follow_tree(struct profiler *p, struct pipeline_options *pipeline)
{
	pipeline->selected = tree_has;
	pipeline->forked = tree_forked;
	pipeline->lost = tree_lost;
	pipeline->route = p->route ? tree_route : NULL;
	pipeline->arg = p;
}

static int open_pipeline(struct profiler *p, const struct profiler_options *o)
{
	struct pipeline_options pipeline = {
		.kept = {o->kept.threads || o->kept.times, o->kept.times},
		.route = o->route,
		.selected = o->selected,
		.arg = o->arg,
		.waiting_bytes = o->memory.waiting,
		.bpf = p->bpf,
		.choosers = &p->choosers,
		.background = o->dynamic || o->all,
		.same_frames = !o->dynamic,
	};
	int r;

	if (p->tree)
		follow_tree(p, &pipeline);
	if (p->stream && !o->dynamic && may_stop(p, o)) {
		pipeline.forked = stop_forked;
		pipeline.route = stop_route;
		pipeline.arg = p;
	}
	r = pipeline_new(&p->pipeline, &pipeline, p->worker, &p->unwinders);
	if (!r && pipeline.route == stop_route && !o->route) {
		struct collector *c;

		r = collector_new(&c);
		if (!r)
			pipeline_set_collector(p->pipeline, 0, c);
	}
	if (!r)
		r = symbolizer_new(&p->symbolizer, pipeline_files(p->pipeline), p->worker,
				   o->inlines);
	if (!r && o->dynamic)
		symbolizer_make_tables(p->symbolizer);
	if (r)
		log_error("cannot start sampling: %s", strerror(-r));
	return r ? EX_OSERR : 0;
}

/* ---- without BPF ---- */

/* The first process that fusee may not stop; 0: it may stop all. A held command is a child, which
 * it may stop. */
static pid_t find_refused(const struct profiler_options *o, int *err)
{
	for (uint32_t i = 0; i < o->npids; i++) {
		*err = stop_may(o->pids[i]);
		if (*err)
			return o->pids[i];
	}
	return 0;
}

static int open_stop(struct profiler *p, const struct profiler_options *o)
{
	const struct stop_options stop = {.pipeline = p->pipeline,
					  .worker = p->worker,
					  .period_ns = o->period_ns,
					  .beside_events = p->stream};
	int r = stop_sampler_new(&p->stop, &stop);

	for (uint32_t i = 0; !r && i < o->npids; i++) {
		r = stop_sampler_add(p->stop, o->pids[i]);
		if (r == -ESRCH && o->npids > 1)
			r = 0;
	}
	if (r)
		log_error("cannot start sampling: %s", strerror(-r));
	return r == -ESRCH ? EX_NOINPUT : r ? EX_OSERR : 0;
}

/* Checks the options if the sampler `stop` was chosen. */
static int check_stop(const struct profiler_options *o)
{
	char why[256];
	int err = 0;
	pid_t pid;

	if (!o->npids) {
		log_error("the sampler 'stop' stops the threads of processes that are named, and "
			  "of what they start: name a command (-- COMMAND) or processes (-p PID)");
		return EX_USAGE;
	}
	pid = find_refused(o, &err);
	if (!pid)
		return 0;
	if (err == -ESRCH) {
		log_error("there is no process %d", (int)pid);
		return EX_NOINPUT;
	}
	stop_refusal(pid, 0, why, sizeof(why));
	log_error("%s", why);
	return EX_NOPERM;
}

static int open_sampling(struct profiler *p, const struct profiler_options *o)
{
	struct wait_periods counts;
	int r, err;

	if (o->sampler == SAMPLER_STOP)
		return check_stop(o);
	r = open_stream(p, o);
	if (!r && choosers_count_from_exec(p, o, &counts))
		perf_stream_count_from_exec(p->stream, &counts);
	if (r != -EACCES && r != -EPERM && r != -ENOSYS)
		return r < 0 ? explain_refusal(o, r) : r;
	if (!may_stop(p, o) || find_refused(o, &err))
		return explain_refusal(o, r);
	p->no_stream = strdup(strerror(-r));
	return 0;
}

int profiler_open(struct profiler *p, const struct profiler_options *o)
{
	int r;

	*p = (struct profiler){.pids = o->pids,
			       .npids = o->npids,
			       .all = o->all,
			       .dynamic = o->dynamic,
			       .held = o->held,
			       .period_ns = o->period_ns,
			       .route = o->route,
			       .route_arg = o->arg};
	r = open_worker(p, o);
	if (!r)
		r = choosers_open(p, o);
	if (!r && !o->no_events)
		r = open_bpf(p, o);
	if (!r && !o->no_events)
		r = open_sampling(p, o);
	if (!r)
		r = open_pipeline(p, o);
	if (!r && !o->no_events && may_stop(p, o))
		r = open_stop(p, o);
	if (!r && o->held && o->command.programs)
		prepare_expected(p, o->command.programs);
	return r;
}

void profiler_close(struct profiler *p)
{
	stop_sampler_free(p->stop);
	perf_stream_close(p->stream);
	bpf_sampler_keep_pages(p->bpf);
	worker_stop(p->worker);
	symbolizer_free(p->symbolizer);
	pipeline_free(p->pipeline);
	process_tree_free(p->tree);
	bpf_sampler_close(p->bpf);
	free(p->no_bpf);
	free(p->no_stream);
	plugin_choosers_close(&p->choosers);
	plugin_set_close(&p->unwinders);
	*p = (struct profiler){0};
}

int profiler_follow_group(struct profiler *p, const char *dir)
{
	return p->tree ? process_tree_follow_group(p->tree, dir) : -ENOTSUP;
}

/* ---- sampling ---- */

int profiler_enable(struct profiler *p)
{
	int r = p->stream ? perf_stream_enable(p->stream) : 0;
	uint64_t now = clock_now();

	if (r || p->dynamic || p->held)
		return r;
	if (p->stop)
		r = stop_sampler_enable(p->stop);
	/* Mappings made since profiler_prepare(); later mappings come as records. Of all processes
	 * they are read with the next sample, while the kernel knows what was published. */
	if (p->all)
		pipeline_scan_again(p->pipeline);
	for (uint32_t i = 0; i < p->npids; i++)
		pipeline_scan(p->pipeline, p->pids[i]);
	if (p->tree) /* finds processes that were started before the events recorded forks */
		tree_lost(p);
	pipeline_update(p->pipeline, now);
	return r;
}

void profiler_command_goes_on(struct profiler *p)
{
	if (p->stream)
		perf_stream_command_runs(p->stream);
}

int profiler_command_runs(struct profiler *p)
{
	/* What it starts may be of any language; the command does not wait for that. */
	if (p->bpf && pipeline_may_start(p->pipeline, p->pids[0]))
		bpf_sampler_load_languages(p->bpf, NULL);
	return p->stop ? stop_sampler_enable(p->stop) : 0;
}

int profiler_disable(struct profiler *p)
{
	if (p->stop)
		stop_sampler_disable(p->stop);
	return p->stream ? perf_stream_disable(p->stream) : 0;
}

/* The time until which the pipeline has read the kernel's records. */
static uint64_t horizon(const struct profiler *p)
{
	return p->stream ? perf_stream_horizon(p->stream) : clock_now();
}

static void drain_stream(struct profiler *p, uint64_t until_ns)
{
	if (!perf_stream_looks_again(p->stream))
		p->new_code = pipeline_new_code(p->pipeline);
	perf_stream_drain_until(p->stream, pipeline_handlers(p->pipeline), until_ns);
	/* A first publication must be up to date: the kernel notes new memory only where it knows
	 * code, so it would miss a library that was replaced since, and stacks over it would be
	 * discarded. */
	if (pipeline_has_unpublished(p->pipeline) && !perf_stream_is_behind(p->stream))
		perf_stream_drain_now(p->stream, pipeline_handlers(p->pipeline), until_ns);
}

void profiler_drain(struct profiler *p, uint64_t until_ns)
{
	uint64_t began = clock_now();

	if (p->tree)
		process_tree_poll(p->tree, began);
	if (p->stream)
		drain_stream(p, until_ns);
	pipeline_update(p->pipeline, horizon(p));
	if (p->bpf)
		bpf_sampler_woke(p->bpf, clock_now() - began);
	pipeline_retry(p->pipeline);
}

void profiler_end_looks(struct profiler *p)
{
	if (p->stream && !perf_stream_is_behind(p->stream) &&
	    pipeline_new_code(p->pipeline) == p->new_code)
		perf_stream_end_looks(p->stream);
}

void profiler_dispatch(struct profiler *p)
{
	worker_dispatch(p->worker);
	/* First the tables, then stacks that waited for them: what these read of a table that the
	 * kernel has is loaded, and remembered. */
	if (pipeline_has_unpublished(p->pipeline))
		pipeline_update(p->pipeline, horizon(p));
	pipeline_retry(p->pipeline);
}

void profiler_take_mappings(struct profiler *p)
{
	pipeline_take_mappings(p->pipeline);
	/* The first call publishes the mappings, the second confirms them. */
	for (int i = 0; i < 2; i++)
		pipeline_update(p->pipeline, horizon(p));
	pipeline_retry(p->pipeline);
}

void profiler_stop(struct profiler *p)
{
	profiler_disable(p);
	if (p->stream)
		perf_stream_drain(p->stream, pipeline_handlers(p->pipeline), true);
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
	profiler_counts(p, &p->window_start[i]);
	pipeline_set_collector(p->pipeline, i, c);
	*slot = i;
	return 0;
}

void profiler_end_window(struct profiler *p, uint32_t slot)
{
	p->window_end_ns[slot] = clock_now();
	profiler_counts(p, &p->window_end[slot]);
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
	/* An empty window has no profile: its losses count for the next window. */
	if (w->collector && (w->collector->count || !more)) {
		profiler_account_window(p, w->collector, &p->window_start[slot],
					&p->window_end[slot], &w->losses);
		p->window_start[slot] = p->window_end[slot];
	} else {
		profiler_account_nothing(p, &w->losses);
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
