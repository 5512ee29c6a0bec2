/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/pipeline
/* Mappings and names that the agent has read in the background, between samples and records: what a
 * record says is newer, and no sample waits longer than for the mappings of its own process. */
#include "pipeline/state.h"

#include <limits.h>

#include "base/clock.h"
#include "lib/sleeper.h"
#include "mapping_help.h"
#include "pipeline/budget.h"
#include "worker_help.h"

#define FIRST_TID 10000000
#define MANY 12000u
#define MANY_THREADS 200000u
#define PAGE 4096ull

struct world {
	struct worker *worker;
	struct plugin_set unwinders;
	struct pipeline *p;
	const struct perf_stream_handlers *on;
};

static void world_begin(struct world *w, bool background)
{
	const struct pipeline_options o = {.background = background};
	const struct worker_options none = {0};

	*w = (struct world){0};
	CHECK_INT(worker_new(&w->worker, &none), 0);
	CHECK_INT(pipeline_new(&w->p, &o, w->worker, &w->unwinders), 0);
	w->on = pipeline_handlers(w->p);
}

static void world_new(struct world *w)
{
	world_begin(w, true);
}

static void world_free(struct world *w)
{
	worker_stop(w->worker);
	pipeline_free(w->p);
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
	} while (w->p->taking.answer || readable.revents & POLLIN);
}

/* Samples that were truncated for this reason. */
static uint64_t count(const struct world *w, enum loss_reason reason)
{
	return w->p->account.counts[reason].n;
}

/* Takes what was requested, and walks the samples that wait, until none waits for mappings. */
static void walk_all(struct world *w)
{
	do {
		take_all(w);
		pipeline_retry(w->p);
	} while (w->p->waiting.first && w->p->waiting.first->unmapped);
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
TEST_IN_WORLD(a_sample_waits_for_no_other_process)
{
	pid_t pid = sleeper();

	sample(w, getpid(), map_file(w));
	CHECK_INT(waiting_count(&w->p->waiting), 1);
	CHECK(w->p->waiting.first->file);
	sample(w, pid, NULL);
	CHECK_INT(waiting_count(&w->p->waiting), 2);
	CHECK_INT(w->p->waiting.first->next->file, 0);
	take_all(w);
	pipeline_retry(w->p);
	CHECK_INT(waiting_count(&w->p->waiting), 1);
	CHECK_INT(w->p->waiting.first->sample.pid, getpid());
	end(pid);
}

/* What was read is another program's. */
TEST_IN_WORLD(samples_of_a_program_that_execs_meanwhile)
{
	pid_t pid = sleeper();

	sample(w, pid, NULL);
	CHECK_INT(waiting_count(&w->p->waiting), 1);
	w->on->comm(w->on->arg, pid, pid, clock_now(), "another", true);
	take_all(w);
	pipeline_retry(w->p);
	CHECK_INT(waiting_count(&w->p->waiting), 0);
	CHECK_INT(count(w, LOSS_MAPPINGS_NOT_READ), 1);
	end(pid);
}

TEST_IN_WORLD(a_name_that_is_newer_than_the_reading)
{
	pid_t pid = sleeper();
	struct process *proc;

	sample(w, pid, NULL);
	w->on->comm(w->on->arg, pid, pid, clock_now(), "newer", false);
	take_all(w);
	proc = process_find(w->p->processes, pid);
	CHECK_STR(process_comm(w->p->processes, proc, pid), "newer");
	CHECK_STR(proc->comm, "newer");
	end(pid);
}

/* ---- answers as a reader would give them ---- */

static struct process *follow(struct world *w, uint64_t time)
{
	const struct procfs_mapping m = {.lo = 0x10000, .hi = 0x90000, .name = ""};

	w->on->mapped(w->on->arg, getpid(), time, &m);
	return process_find(w->p->processes, getpid());
}

/* An answer, to be taken next, with this many mappings from this address downwards. */
static void answer(struct world *w, struct process *proc, uint64_t requested, uint32_t n,
		   uint64_t lo, uint64_t hi)
{
	struct maps_answer *a = calloc(1, sizeof(*a));

	CHECK(a);
	*a = (struct maps_answer){
		.pid = proc->pid, .id = proc->id, .requested_ns = requested, .exe = "", .n = n};
	a->mappings = calloc(n, sizeof(*a->mappings));
	CHECK(a->mappings);
	for (uint32_t i = 0; i < n; i++)
		a->mappings[i] = (struct procfs_mapping){
			.lo = lo - i * 2 * PAGE, .hi = hi - i * 2 * PAGE, .name = ""};
	followed_of(proc)->reading = followed_of(proc)->rereads = true;
	w->p->taking.answer = a;
	w->p->taking.named = w->p->taking.taken = 0;
}

/* The kernel says of one range what a newer record has split. */
TEST_IN_WORLD(a_mapping_that_a_newer_record_has_split)
{
	const struct procfs_mapping m = {.lo = 0x30000, .hi = 0x40000, .name = "/nonesuch/x"};
	struct process *proc = follow(w, 10);

	w->on->mapped(w->on->arg, getpid(), 30, &m);
	answer(w, proc, 20, 1, 0x10000, 0x90000);
	take_all(w);
	CHECK(!followed_of(proc)->reading);
	CHECK(process_mapping(proc, 0x20000) && process_mapping(proc, 0x80000));
	CHECK(process_mapping(proc, 0x30000) && process_mapping(proc, 0x30000)->file);
}

TEST_IN_WORLD(a_mapping_that_the_kernel_does_not_have)
{
	struct process *proc = follow(w, 10);

	answer(w, proc, 20, 1, 0x100000, 0x101000);
	take_all(w);
	CHECK(!process_mapping(proc, 0x20000) && process_mapping(proc, 0x100000));
	CHECK_INT(kernel_view_of(proc)->read, 20);
}

/* Records of mappings come between two slices, older than the reading: what was taken before is
 * replaced, and that must not count as what the kernel does not have. */
TEST_IN_WORLD(a_record_between_two_slices)
{
	const uint64_t lo = 1ull << 40;
	const struct procfs_mapping m = {.lo = lo, .hi = lo + PAGE, .name = "/nonesuch/x"};
	struct process *proc = follow(w, 10);

	answer(w, proc, 20, MANY, lo, lo + PAGE);
	do /* a slice that had to wait for a CPU takes nothing */
		pipeline_take_mappings(w->p);
	while (!process_mapping(proc, lo));
	CHECK(w->p->taking.answer &&
	      proc->n < MANY); /* in slices, whatever the path of the executable */
	w->on->mapped(w->on->arg, getpid(), 15, &m);
	take_all(w);
	CHECK(process_mapping(proc, lo) && process_mapping(proc, lo)->file);
	CHECK(process_mapping(proc, lo - 2 * PAGE));
	CHECK(!kernel_view_of(proc)->read); /* it is read again */
}

/* Whoever starts many threads does not keep the control thread. */
TEST(names_of_many_threads_are_taken_in_slices)
{
	struct maps_thread *threads = calloc(MANY_THREADS, sizeof(*threads));
	struct process *proc;
	struct world w;

	CHECK(threads);
	for (uint32_t i = 0; i < MANY_THREADS; i++)
		threads[i] = (struct maps_thread){.tid = FIRST_TID + (pid_t)i, .comm = "one"};
	world_new(&w);
	proc = follow(&w, 10);
	answer(&w, proc, 20, 1, 0x100000, 0x101000);
	w.p->taking.answer->threads = threads;
	w.p->taking.answer->nthreads = MANY_THREADS;
	pipeline_take_mappings(w.p);
	CHECK(w.p->taking.answer && w.p->taking.named < MANY_THREADS && !w.p->taking.taken);
	take_all(&w);
	CHECK_STR(process_comm(w.p->processes, proc, FIRST_TID), "one");
	CHECK_STR(process_comm(w.p->processes, proc, FIRST_TID + MANY_THREADS - 1), "one");
	CHECK(process_mapping(proc, 0x100000));
	world_free(&w);
}

/* ---- addresses that no known mapping has ---- */

#define NO_CODE ((void *)16)

/* Code of the test, and of its children. */
static const void *code(void)
{
	return (const void *)(uintptr_t)sleeper;
}

/* A program begins; records of its mappings come, or are lost. */
static struct process *begin_program(struct world *w, pid_t pid)
{
	w->on->comm(w->on->arg, pid, pid, clock_now(), "program", true);
	return process_find(w->p->processes, pid);
}

static const struct procfs_mapping removed_server = {
	.lo = 0x30000, .hi = 0x40000, .name = "/nonesuch/server (deleted)"};

/* An update of a package removes the file of a program that runs. */
TEST_IN_WORLD(the_name_of_a_removed_program)
{
	begin_program(w, getpid());
	w->on->mapped(w->on->arg, getpid(), 10, &removed_server);
	CHECK_STR(process_find(w->p->processes, getpid())->name, "server");
}

/* The first record of a program that was there before is of a library. */
TEST_IN_WORLD(the_name_of_a_program_that_maps_a_library)
{
	char exe[PATH_MAX] = "";
	struct process *proc;
	pid_t pid = sleeper();

	w->on->mapped(w->on->arg, pid, 10, &removed_server);
	proc = process_find(w->p->processes, pid);
	CHECK_STR(proc->name, "");
	sample(w, pid, NULL);
	w->on->mapped(w->on->arg, pid, 20, &removed_server);
	CHECK_STR(proc->name, "");
	take_all(w);
	CHECK(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	CHECK_STR(proc->name, strrchr(exe, '/') + 1);
	end(pid);
}

/* The sample's address was executed, so its mapping exists: it is read from /proc. */
TEST_IN_WORLD(code_whose_record_was_lost)
{
	pid_t pid = sleeper();

	begin_program(w, pid);
	sample(w, pid, code());
	CHECK(w->p->waiting.first && w->p->waiting.first->unmapped);
	walk_all(w);
	CHECK(w->p->waiting.first && w->p->waiting.first->file); /* for the worker */
	CHECK_INT(w->p->account.truncated, 0);
	end(pid);
}

/* The same where nothing is read in the background, as in `fusee record`. */
TEST(code_whose_record_was_lost_in_a_recording)
{
	pid_t pid = sleeper();
	struct world w;

	world_begin(&w, false);
	begin_program(&w, pid);
	sample(&w, pid, code());
	CHECK(w.p->waiting.first && w.p->waiting.first->file);
	sample(&w, pid, NO_CODE);
	CHECK_INT(count(&w, LOSS_CODE_NOT_MAPPED), 1);
	world_free(&w);
	end(pid);
}

/* A mapping that came by a record does not mean that all are known. */
TEST_IN_WORLD(a_process_that_is_known_in_part_is_read_before_it_is_judged)
{
	const struct procfs_mapping other = {.lo = PAGE, .hi = 2 * PAGE, .name = ""};
	pid_t pid = sleeper();

	w->on->mapped(w->on->arg, pid, clock_now(), &other);
	sample(w, pid, code());
	walk_all(w);
	CHECK(w->p->waiting.first && w->p->waiting.first->file);
	CHECK_INT(w->p->account.truncated, 0);
	end(pid);
}

/* All mappings were read after the sample, and none has the address. They are not read again for
 * the next such sample. */
TEST_IN_WORLD(an_address_that_is_no_code)
{
	pid_t pid = sleeper();
	struct process *proc = begin_program(w, pid);

	sample(w, pid, NO_CODE);
	walk_all(w);
	CHECK_INT(count(w, LOSS_CODE_NOT_MAPPED), 1);
	CHECK(followed_of(proc)->unmapped.until_ns);
	followed_of(proc)->unmapped.until_ns = UINT64_MAX;
	sample(w, pid, NO_CODE);
	CHECK_INT(count(w, LOSS_CODE_NOT_MAPPED), 2);
	CHECK_INT(count(w, LOSS_MAPPINGS_NOT_READ), 0);
	w->on->lost(w->on->arg, 1); /* a mapping may have been among them */
	w->p->rescan.time = UINT64_MAX / 2;
	sample(w, pid, NO_CODE);
	CHECK_INT(count(w, LOSS_MAPPINGS_NOT_READ), 1);
	end(pid);
}

/* Processes that jump to nowhere have no more read than others leave. */
TEST_IN_WORLD(readings_because_of_samples_have_a_budget)
{
	pid_t pid = sleeper();
	struct process *proc;
	uint64_t second;

	do {
		walk_all(w);
		proc = begin_program(w, pid);
		second = clock_now() / 1000000000u;
		w->p->reading = (struct time_used){.second = second, .records = BUDGET_READINGS};
		sample(w, pid, NO_CODE);
	} while (clock_now() / 1000000000u != second);
	CHECK(!followed_of(proc)->reading && !followed_of(proc)->unmapped.ns);
	end(pid);
}

TEST(mappings_of_a_process_that_has_ended)
{
	pid_t pid = sleeper();
	struct world w;

	end(pid);
	world_new(&w);
	sample(&w, pid, code());
	walk_all(&w);
	CHECK_INT(count(&w, LOSS_MAPPINGS_NOT_READ), 1);
	CHECK_INT(count(&w, LOSS_CODE_NOT_MAPPED), 0);
	world_free(&w);
}

/* The sample cannot wait for its mappings. */
TEST_IN_WORLD(a_sample_without_room_to_wait)
{
	pid_t pid = sleeper();

	w->p->waiting.limit = 0;
	sample(w, pid, code());
	CHECK_INT(count(w, LOSS_MAPPINGS_NOT_READ), 1);
	CHECK_INT(count(w, LOSS_CODE_NOT_MAPPED), 0);
	end(pid);
}

/* A window that ends meanwhile has the sample with what it waits for. */
TEST_IN_WORLD(a_window_that_ends_before_mappings_are_read)
{
	pid_t pid = sleeper();
	const struct collector *c;
	const struct sample_key *k;

	sample(w, pid, code());
	pipeline_give_up(w->p, 0);
	c = pipeline_collector(w->p, 0);
	CHECK_INT(c->samples.n, 2);
	k = c->samples.entries[1].key;
	CHECK_INT(k->reason, LOSS_MAPPINGS_NOT_READ);
	end(pid);
}

/* Another process of the user keeps the reader waiting. A child has what its parent has, and is
 * read by itself. */
TEST_IN_WORLD(mappings_that_are_refused)
{
	const pid_t child = FIRST_TID;
	struct process *proc = follow(w, 10);

	followed_of(proc)->scan = w->p->rescan.number;
	followed_of(proc)->unmapped.until_ns = UINT64_MAX;
	answer(w, proc, clock_now(), 0, 0, 0);
	w->p->taking.answer->err = -ETIMEDOUT;
	take_all(w);
	CHECK(process_mapping(proc, 0x20000)); /* nothing is dropped */
	CHECK(followed_of(proc)->retry_ns);
	followed_of(proc)->retry_ns = 0;
	sample(w, getpid(), NO_CODE);
	CHECK_INT(count(w, LOSS_MAPPINGS_NOT_READ), 1);
	w->on->forked(w->on->arg, child, getpid(), child, clock_now());
	CHECK_INT(followed_of(process_find(w->p->processes, child))->scan, 0);
	answer(w, proc, clock_now(), 1, 0x100000, 0x101000);
	take_all(w);
	sample(w, getpid(), NO_CODE);
	CHECK_INT(count(w, LOSS_CODE_NOT_MAPPED), 1);
	CHECK_INT(count(w, LOSS_MAPPINGS_NOT_READ), 1);
}

/* A reading of a process that was about to run another program finds nothing. */
TEST_IN_WORLD(a_reading_without_mappings_drops_none)
{
	struct process *proc = follow(w, 10);

	answer(w, proc, 20, 0, 0, 0);
	take_all(w);
	CHECK(process_mapping(proc, 0x20000));
}

/* Failures that follow each other are tried ever more rarely; one failure after a long time, as
 * soon as the first. */
TEST(pauses_grow_and_begin_anew)
{
	const uint64_t second = 1000000000u;
	struct growing_pause pause = {0};
	uint64_t first;

	pipeline_begin_pause(&pause, 64 * second);
	first = pause.ns;
	CHECK(first && first <= second && pause.until_ns <= clock_now() + first);
	pipeline_begin_pause(&pause, 64 * second);
	CHECK_INT(pause.ns, 2 * first);
	for (int i = 0; i < 20; i++)
		pipeline_begin_pause(&pause, 64 * second);
	CHECK(pause.ns >= 64 * second && pause.ns < 128 * second);
	pause = (struct growing_pause){clock_now() - 60 * second, 16 * second};
	pipeline_begin_pause(&pause, 64 * second);
	CHECK_INT(pause.ns, first);
}
