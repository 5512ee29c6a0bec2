// SPDX-License-Identifier: Apache-2.0
/* The worker processes: for clean files, for files of other owners, for steps. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "sandbox/spawn.h"
#include "worker/internal/client.h"

/* inspect() of an unwinder may take MAX_WAITS times its CPU time, if it gets at least one part in
 * MIN_CPU_SHARE of a CPU. */
#define MAX_WAITS 4u
#define MIN_CPU_SHARE 16u
#define NAMES_MS 10000u      /* for a table of names */
#define STEP_MS 1000u        /* a step takes microseconds, but an expression can be endless */
#define ENDING_NS 5000000u   /* how often it is checked whether a process has ended */
#define SHORT_NS 100000000u  /* an inspection that began within this time is soon over */
#define MANY_TIMES 4u        /* the samples that wait for the urgent one and for this one */
#define MAX_GIVEN_WAY 2u     /* how often an inspection begins anew for an urgent request */
#define STUCK_NS 1000000000u /* the same for a stuck process, and for requests that wait */
#define MAX_STUCK_OF_USER 2u /* processes */

void pool_init(struct worker *w)
{
	static const enum client_lane lanes[POOL_SLOTS] = {
		LANE_CLEAN,       LANE_OTHERS, LANE_OTHERS, LANE_STEP_CLEAN,
		LANE_STEP_OTHERS, LANE_LARGE,  LANE_LARGE,  LANE_REST};

	for (int i = 0; i < POOL_SLOTS; i++)
		w->slots[i] = (struct slot){.lane = lanes[i], .unwinder = -1};
	w->slots[2].spare = true;
}

static void release_dying(struct worker *w)
{
	for (int i = 0; i < POOL_DYING; i++)
		child_stop(&w->dying[i].child);
}

void pool_stop(struct worker *w)
{
	for (int i = 0; i < POOL_SLOTS; i++)
		child_end(&w->slots[i].child, true);
	for (int i = 0; i < POOL_SLOTS; i++)
		child_stop(&w->slots[i].child);
	release_dying(w);
}

/* 0: the worker's default. */
static uint64_t memory_of(const struct worker *w, enum client_lane lane)
{
	static const uint32_t parts[LANES] = {
		[LANE_CLEAN] = 1, [LANE_OTHERS] = 2,     [LANE_LARGE] = 1,
		[LANE_REST] = 1,  [LANE_STEP_CLEAN] = 4, [LANE_STEP_OTHERS] = 4};

	return w->memory_limit / parts[lane];
}

int pool_start(struct worker *w, struct slot *s)
{
	int err;

	if (s->child.pid)
		return 0;
	err = child_start(&s->child, w->arguments, memory_of(w, s->lane), &w->output_limit);
	if (err)
		return err;
	s->used = false;
	s->requests = 0;
	err = poller_add(&w->poller, s->child.sock);
	if (!err)
		err = poller_add(&w->poller, s->child.output.fd);
	if (err)
		child_stop(&s->child);
	return err;
}

/* Moves the process to those that were killed. */
static bool move_to_dying(struct worker *w, struct slot *s, bool stuck)
{
	for (int i = 0; i < POOL_DYING; i++) {
		struct dying *d = &w->dying[i];

		if (d->child.pid)
			continue;
		*d = (struct dying){.child = s->child, .user = s->user, .stuck = stuck};
		output_close(&d->child.output, d->child.pid);
		s->child.pid = 0;
		return true;
	}
	return false;
}

void pool_end(struct worker *w, struct slot *s, const char *reason)
{
	s->reason = reason;
	/* The end of file would keep the socket readable until the process has ended. */
	if (s->child.pid && !s->child.ending)
		poller_remove(&w->poller, s->child.sock);
	child_end(&s->child, reason);
}

bool pool_retire(struct worker *w, struct slot *s)
{
	pool_end(w, s, "it is not needed");
	return move_to_dying(w, s, false);
}

static void reap_slot(struct worker *w, struct slot *s,
		      void (*ended)(struct worker *, struct slot *, const char *why))
{
	char why[256];
	bool stuck;

	if (child_has_ended(&s->child, why, sizeof(why), &stuck)) {
		ended(w, s, why);
	} else if (stuck && move_to_dying(w, s, true)) {
		ended(w, s, "it does not end when it is killed");
	}
}

void pool_reap(struct worker *w, void (*ended)(struct worker *, struct slot *, const char *why))
{
	for (int i = 0; i < POOL_SLOTS; i++)
		if (w->slots[i].child.pid && w->slots[i].child.ending)
			reap_slot(w, &w->slots[i], ended);
	for (int i = 0; i < POOL_DYING; i++) {
		struct dying *d = &w->dying[i];
		bool stuck;

		if (d->child.pid && !child_has_ended(&d->child, NULL, 0, &stuck))
			d->stuck |= stuck;
	}
}

void pool_read_output(struct worker *w)
{
	for (int i = 0; i < POOL_SLOTS; i++) {
		struct child *c = &w->slots[i].child;

		/* A pipe whose other end is closed stays readable. */
		if (c->pid && c->output.fd >= 0 && output_read(&c->output, c->pid))
			output_close(&c->output, c->pid);
	}
}

bool pool_is_stuck(const struct worker *w, uint32_t user)
{
	uint32_t n = 0;

	for (int i = 0; i < POOL_DYING; i++)
		n += w->dying[i].child.pid && w->dying[i].stuck && w->dying[i].user == user;
	return n >= MAX_STUCK_OF_USER;
}

/* ---- the time of inspect() ---- */

void pool_inspect_begins(struct slot *s, uint32_t ms)
{
	s->began_ns = clock_now();
	s->cpu_ns = spawn_cpu_ns(s->child.pid);
	s->inspect_ns = (uint64_t)ms * 1000000;
	s->deadline = s->began_ns + s->inspect_ns;
}

bool pool_is_late(struct slot *s, uint64_t now)
{
	uint64_t elapsed = now - s->began_ns, used;

	if (now < s->deadline)
		return false;
	if (s->unwinder < 0 || elapsed >= MAX_WAITS * s->inspect_ns)
		return true;
	used = spawn_cpu_ns(s->child.pid) - s->cpu_ns;
	if (used >= s->inspect_ns || used < elapsed / MIN_CPU_SHARE)
		return true;
	s->deadline = now + s->inspect_ns / MAX_WAITS;
	return false;
}

uint32_t pool_time_limit_ms(const struct worker *w, const struct client_request *req)
{
	uint32_t ms = req->stepped ? STEP_MS : req->named ? NAMES_MS : w->request_ms;

	/* For files that are not clean also the key has this limit, as reading them can block. */
	if (req->inspected && (req->keyed || req->lane == LANE_OTHERS))
		ms = INSPECT_MS;
	return ms < w->request_ms ? ms : w->request_ms;
}

/* ---- urgent requests ---- */

void pool_give_way(struct worker *w, const struct client_request *urgent)
{
	uint64_t now = clock_now();

	for (int i = 0; i < POOL_SLOTS && !urgent->item.later; i++) {
		struct slot *s = &w->slots[i];
		struct client_request *req = s->current;

		if (s->lane != urgent->lane || s->user != urgent->item.uid || !req ||
		    !req->inspected ||
		    (!req->item.later && req->item.urgent > urgent->item.urgent / MANY_TIMES) ||
		    req->item.given_way >= MAX_GIVEN_WAY || !s->child.ready || s->child.ending ||
		    now - s->sent_ns < SHORT_NS)
			continue;
		req->item.given_way++;
		s->gives_way = true;
		pool_end(w, s, "samples wait for another file");
	}
}

/* ---- the timer ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a && a < b ? a : b;
}

static uint64_t next_of_slot(const struct worker *w, const struct slot *s, uint64_t now,
			     uint64_t at)
{
	if (s->child.pid && s->child.ending)
		return earlier(at, now + ENDING_NS);
	if (s->current)
		return earlier(at, s->deadline);
	if (s->next)
		return earlier(at, now + ENDING_NS);
	if (s->child.pid)
		return earlier(at, s->idle_since + (uint64_t)w->idle_ms * 1000000);
	return at;
}

void pool_set_timer(struct worker *w)
{
	uint64_t now = clock_now(), at = w->changed ? 1 : 0; /* in the past; 0 would disarm */

	for (int i = 0; i < POOL_SLOTS; i++)
		at = next_of_slot(w, &w->slots[i], now, at);
	for (int i = 0; i < POOL_DYING; i++)
		if (w->dying[i].child.pid)
			at = earlier(at, now + (w->dying[i].stuck ? STUCK_NS : ENDING_NS));
	for (const struct client_request *r = w->delayed; r; r = (void *)r->item.next)
		at = earlier(at, r->not_before);
	for (int i = 0; i < LANES; i++)
		if (w->queues[i].n)
			at = earlier(at, now + STUCK_NS);
	poller_set(&w->poller, at);
}
