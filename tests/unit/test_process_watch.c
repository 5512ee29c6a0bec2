/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/events
/* core/events/process_watch: with real processes. */
#include "test.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "events/process_events.h"
#include "events/process_watch.h"
#include "net/loop.h"

#define MS 1000000ull

static void note_fork(void *arg, pid_t pid, pid_t parent, uint64_t time)
{
	bool *found = arg;

	*found |= parent == getpid();
}

static void ignore_exec(void *arg, pid_t pid, const char *comm, uint64_t time)
{
}

static void ignore_exit(void *arg, pid_t pid, uint64_t time)
{
}

static void ignore_loss(void *arg)
{
}

static struct process_events *open_events(bool *found)
{
	const struct process_events_handlers handlers = {found, note_fork, ignore_exec, ignore_exit,
							 ignore_loss};
	struct process_events *events;

	CHECK_INT(process_events_open(&events, &handlers), 0);
	if (process_events_polls(events))
		SKIP("needs CAP_PERFMON");
	return events;
}

static void begin_process(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
}

static bool is_ready(const struct process_events *events)
{
	struct pollfd fd = {.fd = process_events_fd(events), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* Others begin processes too, so this is tried until none did in the moment between the calls. */
TEST(what_was_drained_makes_nothing_ready)
{
	bool found = false;
	struct process_events *events = open_events(&found);

	begin_process();
	CHECK(process_events_are_waiting(events));
	WAIT_FOR((process_events_drain(events, true),
		  !process_events_are_waiting(events) && !is_ready(events)));
	CHECK(found);
	begin_process();
	WAIT_FOR(is_ready(events));
	process_events_close(events);
}

struct watching {
	struct loop *loop;
	struct process_events *events;
	uint64_t until, due[4096];
	uint32_t n;
	bool found, again;
};

static void on_due(void *arg)
{
	struct watching *w = arg;

	CHECK(w->n < sizeof(w->due) / sizeof(w->due[0]));
	w->due[w->n++] = clock_now();
	process_events_drain(w->events, false);
}

/* Begins processes until the time is over, and waits until one of them was reported after it. */
static void on_moment(void *arg)
{
	struct watching *w = arg;

	if (clock_now() < w->until) {
		begin_process();
	} else if (!w->again) {
		w->again = true;
		w->found = false;
		begin_process();
	} else if (w->found) {
		loop_stop(w->loop);
	}
}

/* While processes begin, there is a drain each 100 ms, and not with each of them. */
TEST(many_events_are_drained_at_once)
{
	struct watching w = {.until = clock_now() + 1000 * MS};
	struct process_watch *watch;
	struct loop_timer *timer;
	uint32_t soon = 0;

	w.events = open_events(&w.found);
	CHECK_INT(loop_new(&w.loop), 0);
	CHECK_INT(process_watch_open(&watch, w.loop, w.events, on_due, &w), 0);
	CHECK_INT(loop_every(w.loop, 5 * MS, on_moment, &w, &timer), 0);
	CHECK_INT(loop_run(w.loop), 0);
	CHECK(w.found && w.n >= 2);
	for (uint32_t i = 1; i < w.n; i++)
		soon += w.due[i] - w.due[i - 1] < 90 * MS;
	CHECK_INT(soon, 0);
	process_watch_close(watch);
	process_watch_close(NULL);
	process_events_close(w.events);
	loop_free(w.loop);
}
