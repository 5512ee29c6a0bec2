/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of running targets before the first sample. */
#include "base/clock.h"
#include "base/log.h"
#include "process/procfs.h"
#include "profiler/profiler.h"

/* Of all processes of the machine, for which the user waits. What is not ready by then is read as
 * samples need it. */
#define ALL_NS 6000000000ull     /* until sampling begins */
#define READING_NS 4000000000ull /* of it, to read mappings and open files */
#define LONG_NS 1000000000ull    /* worth a line */

struct preparation {
	struct profiler *profiler;
	uint64_t until; /* CLOCK_MONOTONIC */
	uint32_t n;     /* processes that were read */
};

static int read_process(void *arg, pid_t pid)
{
	struct preparation *t = arg;
	bool kernel;

	if (clock_now() > t->until)
		return 1;
	if (procfs_is_kernel(pid, &kernel) || kernel)
		return 0;
	t->n += !pipeline_scan(t->profiler->pipeline, pid);
	return 0;
}

static void prepare_all(struct profiler *p)
{
	uint64_t began = clock_now(), took;
	struct preparation t = {.profiler = p, .until = began + READING_NS};
	bool all = !procfs_each_process(read_process, &t);

	took = clock_now() - began;
	log_debug("%u processes read in %.2f s, %u files wait for the worker", t.n,
		  (double)took / 1e9, worker_pending(p->worker));
	worker_wait_until(p->worker, began + ALL_NS);
	pipeline_update_until(p->pipeline, began + ALL_NS);
	if (p->bpf)
		bpf_sampler_load_languages(p->bpf, NULL);
	took = clock_now() - began;
	log_debug("ready after %.2f s, %u files wait for the worker", (double)took / 1e9,
		  worker_pending(p->worker));
	if (!all || took > LONG_NS)
		log_info("the code of %u processes%s was looked up before, in %.1f s", t.n,
			 all ? "" : ", not of all,", (double)took / 1e9);
}

void profiler_prepare(struct profiler *p)
{
	if (p->held)
		return;
	if (p->all) {
		prepare_all(p);
		return;
	}
	for (uint32_t i = 0; i < p->npids; i++)
		pipeline_scan(p->pipeline, p->pids[i]);
	worker_wait_until(p->worker, 0);
	pipeline_update_all(p->pipeline);
	for (uint32_t i = 0; p->stream && i < p->npids; i++)
		perf_stream_add_own(p->stream, p->pids[i]);
}

void profiler_prepare_held(struct profiler *p)
{
	perf_stream_drain(p->stream, pipeline_handlers(p->pipeline), true);
	pipeline_scan(p->pipeline, p->pids[0]);
	worker_wait_until(p->worker, 0);
	pipeline_retry(p->pipeline);
	/* The first call publishes the mappings, the second confirms them. */
	for (int i = 0; i < 2; i++)
		pipeline_update_all(p->pipeline);
	perf_stream_add_own(p->stream, p->pids[0]);
}
