/* SPDX-License-Identifier: Apache-2.0 */
#include "events/process_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "events/process_events.h"
#include "net/loop.h"

/* SETTLE_NS is a little more than process_events_drain() waits for records of other CPUs. */
#define SETTLE_NS 3000000u
#define PACE_NS 100000000u

struct process_watch {
	struct loop *loop;
	struct process_events *events;
	void (*due)(void *arg);
	void *arg;
	struct loop_watch *watch; /* reports one event, and is then armed again */
	struct loop_timer *timer; /* NULL: the watch is armed */
	uint64_t drained_ns;      /* when all were last read */
};

static void on_due(void *arg);

static void arm(struct process_watch *w)
{
	loop_watch_events(w->watch, EPOLLIN | EPOLLONESHOT);
}

static void drain_at(struct process_watch *w, uint64_t at)
{
	if (loop_at(w->loop, at, on_due, w, &w->timer))
		arm(w); /* no memory: the next event, or the next other drain */
}

/* While events come there is one wake-up for all of PACE_NS. The watch is armed only when all were
 * read, as it would report these. */
static void on_due(void *arg)
{
	struct process_watch *w = arg;

	w->timer = NULL;
	if (process_events_are_waiting(w->events))
		w->due(w->arg);
	w->drained_ns = clock_now();
	if (process_events_are_waiting(w->events))
		drain_at(w, w->drained_ns + PACE_NS);
	else
		arm(w);
}

/* Another drain may have read the event already: that is as if due() had been called now. */
static void on_event(void *arg, int fd, uint32_t events)
{
	struct process_watch *w = arg;
	uint64_t now = clock_now(), paced;

	(void)fd;
	(void)events;
	if (!process_events_are_waiting(w->events))
		w->drained_ns = now;
	paced = w->drained_ns + PACE_NS;
	drain_at(w, now + SETTLE_NS > paced ? now + SETTLE_NS : paced);
}

int process_watch_open(struct process_watch **ret, struct loop *loop, struct process_events *events,
		       void (*due)(void *arg), void *arg)
{
	struct process_watch *w = malloc(sizeof(*w));
	int r = w ? 0 : -ENOMEM;

	if (r)
		return r;
	*w = (struct process_watch){.loop = loop, .events = events, .due = due, .arg = arg};
	r = loop_watch(loop, process_events_fd(events), EPOLLIN | EPOLLONESHOT, on_event, w,
		       &w->watch);
	if (r) {
		free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void process_watch_close(struct process_watch *w)
{
	if (!w)
		return;
	loop_timer_free(w->timer);
	loop_unwatch(w->watch);
	free(w);
}
