/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of running targets before the first sample. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/procfs.h"
#include "profiler/internal/prepare.h"
#include "profiler/profiler.h"

/* Of all processes of the machine, for which the user waits. What is not ready by then is read as
 * samples need it. */
#define ALL_NS 6000000000ull     /* until sampling begins */
#define READING_NS 4000000000ull /* of it, to read mappings and open files */
#define LONG_NS 1000000000ull    /* worth a line */
#define HELD_NS 10000000000ull   /* the longest wait for files of a held command */
#define SAID_NS 2000000000ull    /* .. before which nothing is said */
#define SLICE_NS 50000000ull     /* between looks whether the user interrupts */
#define BATCH 8u                 /* processes that are read and published at once */
#define BATCH_NS 500000000ull    /* the longest wait for their mappings, which may be locked */

/* A process, and its CPU time so far. */
struct used {
	uint64_t ns;
	pid_t pid;
};

struct preparation {
	struct profiler *profiler;
	uint64_t until;    /* CLOCK_MONOTONIC */
	struct used *used; /* processes of the machine: those that used most first */
	uint32_t n, cap;
	uint32_t read;   /* processes that were read */
	uint32_t locked; /* of them, those whose mappings can't be read now */
};

bool prepare_is_interrupted(void)
{
	sigset_t set;

	return !sigpending(&set) &&
	       (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1 ||
		sigismember(&set, SIGHUP) == 1);
}

static bool may_go_on(uint64_t until)
{
	return clock_now() < until && !prepare_is_interrupted();
}

/* The end of a wait after which it is looked whether the user interrupts. */
static uint64_t slice(uint64_t until)
{
	uint64_t end = clock_now() + SLICE_NS;

	return end < until ? end : until;
}

static int note_process(void *arg, pid_t pid)
{
	struct preparation *t = arg;
	struct used u = {.pid = pid};

	if (procfs_used_ns(pid, &u.ns))
		return 0;
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 512;
		struct used *grown = realloc(t->used, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->used = grown;
		t->cap = cap;
	}
	t->used[t->n++] = u;
	return 0;
}

static int by_use(const void *a, const void *b)
{
	const struct used *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Half of the kernel's room is for what begins later. */
static bool has_room(const struct profiler *p)
{
	return !p->bpf || !bpf_sampler_is_half_full(p->bpf);
}

/* Takes the mappings that were requested. A process can keep its reader waiting; the next batches
 * do not wait for it. */
static void take_mappings(struct preparation *t)
{
	struct pipeline *p = t->profiler->pipeline;
	uint64_t until = clock_now() + BATCH_NS;
	uint32_t reading;

	until = until < t->until ? until : t->until;
	while ((reading = pipeline_reading(p)) > t->locked && may_go_on(until)) {
		struct pollfd e = {.fd = pipeline_mappings_fd(p), .events = POLLIN};

		pipeline_take_mappings(p);
		if (pipeline_reading(p) == reading)
			poll(&e, 1, (int)(SLICE_NS / 1000000));
	}
	t->locked = reading;
}

static void wait_for_worker(struct worker *w, uint64_t until)
{
	while (worker_pending(w) && may_go_on(until))
		worker_wait_until(w, slice(until));
}

/* Reads and publishes some processes from the i-th on. Returns the next. */
static uint32_t read_batch(struct preparation *t, uint32_t i)
{
	struct profiler *p = t->profiler;
	bool kernel;

	for (uint32_t n = 0; i < t->n && n < BATCH; i++) {
		if (procfs_is_kernel(t->used[i].pid, &kernel) || kernel)
			continue;
		t->read += !pipeline_scan(p->pipeline, t->used[i].pid);
		n++;
	}
	take_mappings(t);
	wait_for_worker(p->worker, t->until);
	pipeline_update(p->pipeline, clock_now());
	return i;
}

/* true: all that there is room for. */
static bool read_processes(struct preparation *t)
{
	uint32_t i = 0;
	bool all = !procfs_each_process(note_process, t);

	if (t->n)
		qsort(t->used, t->n, sizeof(*t->used), by_use);
	if (t->profiler->bpf)
		bpf_sampler_fill_half(t->profiler->bpf, true);
	while (i < t->n && has_room(t->profiler) && may_go_on(t->until))
		i = read_batch(t, i);
	free(t->used);
	return all && !t->locked && (i == t->n || !has_room(t->profiler));
}

static void prepare_all(struct profiler *p)
{
	uint64_t began = clock_now(), took;
	struct preparation t = {.profiler = p, .until = began + READING_NS};
	bool all = read_processes(&t);

	took = clock_now() - began;
	log_debug("%u processes read in %.2f s, %u files wait for the worker", t.read,
		  (double)took / 1e9, worker_pending(p->worker));
	wait_for_worker(p->worker, began + ALL_NS);
	while (!pipeline_update_until(p->pipeline, slice(began + ALL_NS)) &&
	       may_go_on(began + ALL_NS))
		;
	if (p->bpf) {
		bpf_sampler_fill_half(p->bpf, false);
		bpf_sampler_load_languages(p->bpf, NULL);
	}
	took = clock_now() - began;
	log_debug("ready after %.2f s, %u files wait for the worker", (double)took / 1e9,
		  worker_pending(p->worker));
	if (!all || took > LONG_NS)
		log_info("the code of %u processes%s was looked up before, in %.1f s", t.read,
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
	if (p->bpf) /* of other languages, for children: beside those awaited, they took the CPUs */
		bpf_sampler_load_languages(p->bpf, NULL);
	for (uint32_t i = 0; p->stream && i < p->npids; i++)
		perf_stream_add_own(p->stream, p->pids[i]);
}

/* ---- a held command ---- */

/* place: from the folder of the program. */
static void expect(struct profiler *p, const char *program, const char *place)
{
	const char *slash = strrchr(program, '/');
	char *path, *real;

	if (asprintf(&path, "%.*s/%s", (int)(slash - program), program, place) < 0)
		return;
	real = realpath(path, NULL);
	free(path);
	if (!real)
		return;
	log_debug("%s may be loaded by %s", real, program);
	files_of(pipeline_files(p->pipeline), p->pids[0], &(struct procfs_mapping){.name = real});
	free(real);
}

static void expect_of(struct profiler *p, const char *program, const struct fusee_unwinder_ops *ops)
{
	for (uint32_t i = 0; FUSEE_HAS(ops, runtimes) && i < ops->runtimes.n; i++) {
		const struct fusee_runtime *r = FUSEE_AT(struct fusee_runtime, ops->runtimes, i);

		for (const char *const *f = r->files; *f; f++)
			if (strchr(*f, '/'))
				expect(p, program, *f);
	}
}

void prepare_expected(struct profiler *p, const char *programs)
{
	for (; *programs; programs += strlen(programs) + 1)
		for (uint32_t u = 0; u < p->unwinders.n; u++)
			expect_of(p, programs, p->unwinders.instances[u]->descriptor->ops);
}

/* Samples of code whose files are still read then wait, but frames of languages are missing. */
static void wait_for_files(struct profiler *p)
{
	uint64_t began = clock_now();

	wait_for_worker(p->worker, began + SAID_NS);
	if (!worker_pending(p->worker))
		return;
	log_info("the command begins when its files have been read, in %.0f s at most",
		 (double)(HELD_NS - SAID_NS) / 1e9);
	wait_for_worker(p->worker, began + HELD_NS);
}

void profiler_prepare_held(struct profiler *p)
{
	perf_stream_drain(p->stream, pipeline_handlers(p->pipeline), true);
	pipeline_scan(p->pipeline, p->pids[0]);
	wait_for_files(p);
	pipeline_retry(p->pipeline);
	/* The first call publishes the mappings, the second confirms them. */
	for (int i = 0; i < 2; i++)
		pipeline_update_all(p->pipeline);
	perf_stream_add_own(p->stream, p->pids[0]);
}
