/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/internal/flushes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define TIMEOUT_NS 30000000000u
#define POLL_NS 10000000u

enum flush_state { NOT_REQUESTED, REQUESTED, SUCCEEDED, FAILED };

struct flush_request {
	struct flush_request *next;
	struct flushes *all;
	struct control_reply *reply; /* NULL: answered */
	struct loop_timer *timer;
	uint64_t until_ns; /* later windows, of short periods maybe, are not waited for */
	uint64_t deadline_ns;
	bool requested;                    /* of the deliveries */
	_Atomic int sinks[PLAN_MAX_SINKS]; /* enum flush_state; the deliveries' threads write it */
};

static void request_free(struct flush_request *f)
{
	struct flush_request **at = &f->all->first;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	loop_timer_free(f->timer);
	free(f);
}

/* [a delivery's thread] */
static void on_flushed(void *arg, int err)
{
	atomic_store((_Atomic int *)arg, err ? FAILED : SUCCEEDED);
}

static void request_deliveries(struct flush_request *f)
{
	const struct instances *is = f->all->instances;

	f->requested = true;
	for (uint32_t i = 0; i < is->plan->nsinks; i++) {
		f->sinks[i] = REQUESTED;
		delivery_flush(sink_window_delivery(is->windows[i]), f->deadline_ns, on_flushed,
			       &f->sinks[i]);
	}
}

static void answer(struct flush_request *f)
{
	uint32_t failed = 0;
	char error[96];

	for (uint32_t i = 0; i < PLAN_MAX_SINKS; i++) {
		if (f->sinks[i] == REQUESTED)
			return;
		failed += f->sinks[i] == FAILED;
	}
	snprintf(error, sizeof(error),
		 "%u sink%s could not take everything: fusee ctl status says why", failed,
		 failed == 1 ? "" : "s");
	control_answer(f->reply, "", failed ? error : NULL);
	request_free(f);
}

static void on_timer(void *arg)
{
	struct flush_request *f = arg;
	const struct instances *is = f->all->instances;

	worker_dispatch(is->sampling->profiler.worker);
	if (!f->requested && (instances_are_idle(is, f->until_ns) || clock_now() > f->deadline_ns))
		request_deliveries(f);
	if (f->requested)
		answer(f);
}

void flushes_add(struct flushes *all, struct control_reply *reply)
{
	struct flush_request *f = calloc(1, sizeof(*f));

	if (!f || loop_every(all->instances->loop, POLL_NS, on_timer, f, &f->timer)) {
		control_answer(reply, "", "out of memory");
		free(f);
		return;
	}
	f->all = all;
	f->reply = reply;
	f->deadline_ns = clock_now() + TIMEOUT_NS;
	f->next = all->first;
	all->first = f;
	agent_sampling_drain(all->instances->sampling);
	instances_close_windows(all->instances);
	f->until_ns = clock_now();
}

void flushes_cancel(struct flushes *all)
{
	for (struct flush_request *f = all->first; f; f = f->next) {
		control_answer(f->reply, "", "the agent ends");
		f->reply = NULL;
	}
}

void flushes_fini(struct flushes *all)
{
	while (all->first)
		request_free(all->first);
}
