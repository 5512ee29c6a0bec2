/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings and names that the agent has read in the background, between samples and records: what a
 * record says is newer, and no sample waits longer than for the mappings of its own process. */
#include "sampling/pipeline_state.h"

#include <sys/prctl.h>

#include "base/clock.h"
#include "mapping_help.h"
#include "worker_help.h"

#define MANY 12000u
#define PAGE 4096ull

struct world {
	struct worker *worker;
	struct plugin_set unwinders;
	struct pipeline *p;
	const struct perf_stream_handlers *on;
};

static void world_new(struct world *w)
{
	const struct pipeline_options o = {.background = true};
	const struct worker_options none = {0};

	*w = (struct world){0};
	CHECK_INT(worker_new(&w->worker, &none), 0);
	CHECK_INT(pipeline_new(&w->p, &o, w->worker, &w->unwinders), 0);
	w->on = pipeline_handlers(w->p);
}

static void world_free(struct world *w)
{
	worker_stop(w->worker);
	pipeline_free(w->p);
}

/* A process that waits. */
static pid_t sleeper(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A sample of the main thread at this address. */
static void sample(struct world *w, pid_t pid, const void *pc)
{
	const struct sample s = {.pid = pid,
				 .tid = pid,
				 .time = clock_now(),
				 .period = 1,
				 .abi = 2,
				 .regs = {[7] = 0x1000, [16] = (uintptr_t)pc}};

	w->on->sample(w->on->arg, &s);
}

/* Takes all that was requested. */
static void take_all(struct world *w)
{
	struct pollfd readable = {.fd = pipeline_mappings_fd(w->p), .events = POLLIN};

	while (maps_reader_pending(w->p->reader))
		CHECK(poll(&readable, 1, 10) >= 0);
	do {
		pipeline_take_mappings(w->p);
		CHECK(poll(&readable, 1, 0) >= 0);
	} while (w->p->answer || readable.revents & POLLIN);
}

/* Maps a page of a new file as code, and hands over its record. */
static void *map_file(struct world *w)
{
	struct expected_mapping m = {.name = "mapped"};
	int fd = elf_on_disk(0, m.name);
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	CHECK(at != MAP_FAILED);
	close(fd);
	CHECK_INT(procfs_each_mapping(getpid(), find_mapping, &m), 1);
	w->on->mapped(w->on->arg, getpid(), clock_now(), &m.m);
	return at;
}

/* The first sample waits for the worker, which is not heard before the test ends; the second for
 * the mappings of its process. */
TEST(a_sample_waits_for_no_other_process)
{
	pid_t pid = sleeper();
	struct world w;

	world_new(&w);
	sample(&w, getpid(), map_file(&w));
	CHECK_INT(waiting_count(&w.p->waiting), 1);
	CHECK(w.p->waiting.first->file);
	sample(&w, pid, NULL);
	CHECK_INT(waiting_count(&w.p->waiting), 2);
	CHECK_INT(w.p->waiting.first->next->file, 0);
	take_all(&w);
	pipeline_retry(w.p);
	CHECK_INT(waiting_count(&w.p->waiting), 1);
	CHECK_INT(w.p->waiting.first->sample.pid, getpid());
	world_free(&w);
	end(pid);
	remove_scratch();
}

/* What was read is another program's. */
TEST(samples_of_a_program_that_execs_meanwhile)
{
	pid_t pid = sleeper();
	struct world w;

	world_new(&w);
	sample(&w, pid, NULL);
	CHECK_INT(waiting_count(&w.p->waiting), 1);
	w.on->comm(w.on->arg, pid, pid, clock_now(), "another", true);
	take_all(&w);
	pipeline_retry(w.p);
	CHECK_INT(waiting_count(&w.p->waiting), 0);
	world_free(&w);
	end(pid);
}
