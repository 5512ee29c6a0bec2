// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's requests: which is sent to which process, time limits, restarts, refusals of files.
 * An inspection takes two messages: REQUEST_KEY, and, unless the key is refused, REQUEST_INSPECT.
 */
#include "worker/internal/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "inspection/cache_later.h"

#include "sandbox/sandbox.h"
#include "worker/internal/symbolize_reply.h"

#define MAX_DEATHS 2
#define MAX_SHORTAGES 5        /* retries after a lack of memory: the request fails after 3.1 s */
#define SHORTAGE_NS 100000000u /* until the first retry; doubled each time */
#define MAX_STEPS 500000u      /* of one process: libunwind leaks about 100 bytes at each */
#define MAX_MESSAGES 64        /* of one process, that are read in a row */
#define TURN_NS 250000000u     /* how long a process goes on with the files of one user */

/* How a request ended: the arguments of its callback. */
struct result {
	int err;
	const char *text;
	struct inspection *inspection;
	const struct worker_symbols *symbols;
};

/* ---- the end of a request ---- */

/* Runs the callback, which may add requests, and frees the request. */
static void finish(struct worker *w, struct client_request *req, struct result r)
{
	const char *text = r.text ? r.text : "";

	fusee_assert(w->pending || req->named);
	w->pending -= !req->named;
	if (req->named)
		client_names_finish(w, req, r.err);
	else if (req->inspected)
		req->inspected(req->arg, r.err, text, r.inspection);
	else if (req->symbolized)
		req->symbolized(req->arg, r.err, text, r.symbols);
	else
		client_step_finish(req, &(struct protocol_reply){.err = r.err});
	client_request_free(req);
}

static void fail(struct worker *w, struct client_request *req, int err, const char *text)
{
	finish(w, req, (struct result){.err = err, .text = text});
}

/* Fails the request; after a lack of memory, retries it later, up to `most` times. */
static void fail_or_wait(struct worker *w, struct client_request *req, int err, const char *text,
			 unsigned int most)
{
	if (err != -ENOMEM || req->shortages >= most) {
		fail(w, req, err, text);
		return;
	}
	req->not_before = clock_now() + ((uint64_t)SHORTAGE_NS << req->shortages++);
	req->item.next = (void *)w->delayed;
	w->delayed = req;
}

static void add_refusal(struct worker *w, const struct client_request *req, int err, uint64_t skip,
			const char *text)
{
	struct refusal r = {.file = req->file,
			    .keyed = req->keyed,
			    .err = err,
			    .skip = skip,
			    .name = req->name,
			    .text = (char *)text};
	struct buf line = {0};

	memcpy(r.key, req->key, sizeof(r.key));
	refusals_add(&w->refusals, &r);
	/* A time limit of a clean file is not kept: its disk may have been slow. */
	if (w->cache && err && !(err == -ETIMEDOUT && req->file.owner.clean)) {
		refusals_write(&w->refusals, &line);
		cache_append_later(w->background, w->cache, w->refusals_name, &line);
	}
	metric_add(
		"worker_refusals_total",
		"Total number of files, or unwinders' tables of a file, that are refused because "
		"a worker did not survive them or did not come to an end.",
		NULL, 1);
}

static void refuse(struct worker *w, struct client_request *req, int err, const char *text)
{
	/* Not if a server's debug file may be the cause, and not for a table, which takes more. */
	if (!req->file.owner.fetched && !req->named)
		add_refusal(w, req, err, 0, text);
	log_debug("%s is refused: %s", req->name, text);
	fail(w, req, err, text);
}

/* inspect() of an unwinder crashed or did not end: repeats the request without that unwinder. */
static void blame_unwinder(struct worker *w, struct slot *s, struct client_request *req,
			   const char *why)
{
	char text[400];

	req->skip |= 1ull << s->unwinder;
	req->deaths = 0;
	snprintf(text, sizeof(text), "the unwinder '%s' makes no tables of it: %s",
		 s->unwinder_name, why);
	add_refusal(w, req, 0, 1ull << s->unwinder, text);
	if (output_is_allowed(&w->output_limit))
		log_warning("%s: %s", req->name, text);
	metric_add("unwinder_inspect_failures_total",
		   "Total number of files that an unwinder's inspect() did not survive or did not "
		   "finish in time.",
		   METRIC_LABELS("unwinder", s->unwinder_name), 1);
	s->next = req;
}

/* ---- the end of a process ---- */

/* Ends the slot's work on its request, which is returned. */
static struct client_request *take_current(struct worker *w, struct slot *s)
{
	struct client_request *req = s->current;
	uint64_t now = clock_now();

	s->current = NULL;
	s->idle_since = now;
	if (req)
		turns_charge(&w->queues[req->lane], req->item.uid, now, now - s->sent_ns, 0);
	return req;
}

static void timed_out(struct worker *w, struct slot *s, struct client_request *req)
{
	uint64_t ms = (s->deadline - s->sent_ns) / 1000000;
	char text[160];

	if (s->unwinder >= 0) {
		blame_unwinder(w, s, req, "its inspect() does not come to an end");
		return;
	}
	snprintf(text, sizeof(text), "%s does not come to an end in %u.%03u s",
		 req->stepped ? "a step through it" : "the worker that looks at it",
		 (unsigned int)(ms / 1000), (unsigned int)(ms % 1000));
	refuse(w, req, -ETIMEDOUT, text);
}

static void requeue(struct worker *w, struct client_request *req)
{
	int r = turns_add(&w->queues[req->lane], &req->item);

	if (r)
		fail(w, req, r, r == -EBUSY ? "its user has too many requests" : "no memory");
}

/* Repeats, refuses or fails the request that the process worked on. A death before REPLY_READY is
 * not the file's fault. */
static void on_ended(struct worker *w, struct slot *s, const char *why)
{
	struct client_request *req = take_current(w, s);
	char text[512];

	if (s->reason)
		why = s->reason;
	log_debug("worker ended: %s", why);
	if (!req)
		return;
	if (s->gives_way) {
		requeue(w, req);
	} else if (s->timed_out) {
		timed_out(w, s, req);
	} else if (!s->child.ready && s->child.err) {
		if (!w->warned)
			log_warning("%s: files are not read, so that stacks are truncated and "
				    "functions have no "
				    "names",
				    s->child.text);
		w->warned = true;
		fail_or_wait(w, req, s->child.err == -ENOMEM ? -ENOMEM : -EIO, s->child.text, 1);
	} else if (++req->deaths < MAX_DEATHS) {
		s->next = req;
	} else if (s->child.by_others) { /* as the kernel does where memory is short */
		fail_or_wait(w, req, -ENOMEM, why, MAX_SHORTAGES);
	} else if (!s->child.ready) {
		snprintf(text, sizeof(text), "the worker does not start: %s", why);
		fail(w, req, -EIO, text);
	} else if (s->unwinder >= 0) {
		snprintf(text, sizeof(text), "its inspect() kills the worker: %s", why);
		blame_unwinder(w, s, req, text);
	} else {
		snprintf(text, sizeof(text), "%s: %s",
			 req->stepped ? "a step through it ends the worker"
				      : "it kills the worker that looks at it",
			 why);
		refuse(w, req, -EFAULT, text);
	}
}

/* ---- sending ---- */

static int send_request(struct worker *w, struct slot *s, struct client_request *req)
{
	struct protocol_request q = {
		.inlines = req->inlines, .skip = req->skip, .brief = req->brief};
	int err = pool_start(w, s);

	if (err)
		return err;
	if (req->step)
		q = *req->step;
	else
		q.kind = req->named        ? REQUEST_NAMES
			 : req->symbolized ? REQUEST_SYMBOLIZE
			 : req->keyed      ? REQUEST_INSPECT
					   : REQUEST_KEY;
	q.id = req->id = ++w->next_id;
	for (unsigned int i = 0; i < 3; i++)
		if (req->fds[i] >= 0)
			q.fds |= 1u << i;
	q.payload = req->len;
	return protocol_send_request(s->child.sock, &q, req->fds, req->payload);
}

/* true: the request needed no worker: no process maps the file, it is refused, or its inspection is
 * in the cache. */
static bool finish_without_worker(struct worker *w, struct client_request *req)
{
	const struct refusal *r = refusals_find(&w->refusals, &req->file,
						req->keyed ? req->key : NULL);
	struct inspection *i;

	if (r) {
		fail(w, req, r->err, r->text);
		return true;
	}
	if (req->needed && !req->needed(req->arg)) {
		metric_add("worker_requests_dropped_total",
			   "Total number of requests for files that no process maps any more.",
			   NULL, 1);
		fail(w, req, -ECANCELED, "no process maps it any more");
		return true;
	}
	if (pool_is_stuck(w, req->item.uid)) {
		fail(w, req, -EAGAIN, "files of its user keep workers from ending");
		return true;
	}
	if (!req->cached.known || req->keyed || cache_load(w->cache, req->cached.key, &i))
		return false;
	finish(w, req, (struct result){.inspection = i});
	return true;
}

struct turn {
	const struct worker *w;
	const struct slot *slot;
};

/* Whether no other slot of this lane works for the user. Large files are root's, and both slots may
 * read those of one process. */
static bool may_have_slot(void *arg, uint32_t uid)
{
	const struct turn *t = arg;

	for (int i = 0; i < POOL_SLOTS && t->slot->lane != LANE_LARGE; i++) {
		const struct slot *s = &t->w->slots[i];

		if (s != t->slot && s->lane == t->slot->lane && (s->current || s->next) &&
		    s->user == uid)
			return false;
	}
	return true;
}

static struct client_request *next_request(struct worker *w, struct slot *s)
{
	struct turn turn = {w, s};
	struct turns *q = &w->queues[s->lane];
	struct client_request *req = s->next;
	uint64_t now = clock_now();
	bool step = s->lane == LANE_STEP_CLEAN || s->lane == LANE_STEP_OTHERS, over = false;

	s->next = NULL;
	if (req)
		return req;
	req = (void *)turns_take(q, now, false,
				 s->child.pid && now - s->turn_ns < TURN_NS ? &s->user : NULL,
				 may_have_slot, &turn);
	if (!req && (step || !s->spare)) {
		req = (void *)turns_take(q, now, true, NULL, may_have_slot, &turn);
		over = req;
	}
	if (!req)
		return NULL;
	if (s->user != req->item.uid || now - s->turn_ns >= TURN_NS)
		s->turn_ns = now;
	s->user = req->item.uid;
	if (!over || !step)
		return req;
	fail(w, req, -EBUSY, "its user's share of steps is used up");
	return next_request(w, s);
}

/* Whether the slot's process may read the request's file. Ends a process that has read files of
 * another owner, or has made MAX_STEPS. */
static bool is_fit(struct worker *w, struct slot *s, const struct client_request *req)
{
	if (!s->child.pid ||
	    (s->requests < MAX_STEPS && (!s->used || owner_equal(&s->owner, &req->file.owner))))
		return true;
	return pool_retire(w, s);
}

static void sent(struct worker *w, struct slot *s, struct client_request *req)
{
	s->current = req;
	s->used = true;
	s->owner = req->file.owner;
	s->requests++;
	s->unwinder = -1;
	s->timed_out = s->gives_way = false;
	s->sent_ns = clock_now();
	s->deadline = s->sent_ns + (uint64_t)pool_time_limit_ms(w, req) * 1000000;
	if (!req->keyed)
		turns_charge(&w->queues[req->lane], req->item.uid, s->sent_ns, 0, req->item.bytes);
}

static void send_next(struct worker *w, struct slot *s)
{
	while (!s->current && !(s->child.pid && s->child.ending)) {
		struct client_request *req = next_request(w, s);
		int err;

		if (!req)
			return;
		if (finish_without_worker(w, req))
			continue;
		if (!is_fit(w, s, req)) {
			s->next = req;
			return;
		}
		err = send_request(w, s, req);
		if (err == -EPIPE || err == -ECONNRESET) {
			/* The worker died while idle, or it never became ready. */
			if (s->child.ready)
				s->next = req;
			else
				sent(w, s, req);
			pool_end(w, s, NULL);
		} else if (err) {
			fail_or_wait(w, req, err, "no request can be sent to the worker",
				     MAX_SHORTAGES);
		} else {
			sent(w, s, req);
		}
	}
}

/* ---- receiving ---- */

static int map_block(const struct protocol_reply *r, int fd, void **map)
{
	return fd < 0 ? -EBADMSG : protocol_map(fd, r->bytes, map);
}

/* Keeps an inspection on disk, unless the file has changed meanwhile. One for which there was no
 * time is made again by the next run, on a quieter machine perhaps. */
static void store(struct worker *w, const struct client_request *req, struct inspection *i)
{
	struct owner_file now;
	uint8_t key[32];

	if (!w->cache || i->incomplete || req->skip || !owner_is_kept(&req->file.owner) ||
	    owner_of(&w->devices, req->fds[0], &now) ||
	    memcmp(&now.identity, &req->file.identity, sizeof(now.identity)))
		return;
	owner_key(&req->file.identity, w->unwinders, key);
	cache_store_later(w->background, w->cache, key, i, req->name);
}

static int take_inspection(struct worker *w, struct slot *s, const struct protocol_reply *r, int fd)
{
	struct client_request *req = s->current;
	struct inspection *i;
	void *map;
	int err = map_block(r, fd, &map);

	if (!err)
		err = inspection_open(&i, map, r->bytes, req->key);
	if (err)
		return err;
	i->incomplete = r->incomplete;
	if (!r->late)
		store(w, req, i);
	finish(w, take_current(w, s), (struct result){.inspection = i});
	return 0;
}

static int take_symbols(struct worker *w, struct slot *s, const struct protocol_reply *r, int fd)
{
	struct worker_symbols symbols;
	void *map;
	int err = map_block(r, fd, &map);

	if (err)
		return err;
	err = symbolize_reply_open(&symbols, map, r->bytes, (uint32_t)(s->current->len / 8));
	if (!err) {
		finish(w, take_current(w, s),
		       (struct result){.text = r->text, .symbols = &symbols});
		free((void *)symbols.frames);
	}
	munmap(map, r->bytes);
	return err;
}

static void take_step(struct worker *w, struct slot *s, const struct protocol_reply *r)
{
	struct client_request *req = take_current(w, s);

	w->pending--;
	client_step_finish(req, r);
	client_request_free(req);
}

static void take_key(struct worker *w, struct slot *s, const struct protocol_reply *r)
{
	struct client_request *req = take_current(w, s);

	req->keyed = true;
	memcpy(req->key, r->key, sizeof(req->key));
	req->skip = refusals_skip(&w->refusals, &req->file, req->key);
	s->next = req;
}

/* Unwinders are named as their plugins are. */
static bool is_unwinder_name(const char *name)
{
	size_t len = strspn(name,
			    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return len && !name[len] && len < sizeof(((struct slot *)0)->unwinder_name);
}

/* inspect() of an unwinder begins, and has a time of its own. */
static int take_unwinder(struct worker *w, struct slot *s, const struct protocol_reply *r)
{
	const struct client_request *req = s->current;
	uint32_t ms = INSPECT_MS < w->request_ms ? INSPECT_MS : w->request_ms;

	if (!req->inspected || !req->keyed || r->call >= 64 || (int)r->call <= s->unwinder ||
	    req->skip & 1ull << r->call || !is_unwinder_name(r->text))
		return -EBADMSG;
	s->unwinder = (int)r->call;
	memcpy(s->unwinder_name, r->text, strlen(r->text) + 1);
	pool_inspect_begins(s, ms);
	return 0;
}

/* 0; -EBADMSG: the reply is invalid: a malicious file may control the worker. */
static int take_reply(struct worker *w, struct slot *s, const struct protocol_reply *r, int fd)
{
	struct client_request *req = s->current;

	if (!req || r->id != req->id)
		return -EBADMSG;
	if (r->kind == REPLY_UNWINDER)
		return take_unwinder(w, s, r);
	if (r->refused_calls)
		log_debug("%s: the worker got EACCES for %u system calls, the last was %s (%u)",
			  req->name, r->refused_calls, sandbox_call_name(r->call), r->call);
	if (req->stepped) {
		take_step(w, s, r);
	} else if (r->err) {
		/* -ENOMEM: the worker's own limit, which the file may exceed each time. */
		fail_or_wait(w, take_current(w, s),
			     r->err < 0 && r->err > -4096 ? r->err : -EBADMSG, r->text, 1);
	} else if (req->named) {
		int err = client_names_take(w, req, r, fd);

		if (!err)
			finish(w, take_current(w, s), (struct result){0});
		return err;
	} else if (req->symbolized) {
		return take_symbols(w, s, r, fd);
	} else if (req->keyed) {
		return take_inspection(w, s, r, fd);
	} else {
		take_key(w, s, r);
	}
	return 0;
}

static void receive_replies(struct worker *w, struct slot *s)
{
	struct protocol_reply r;
	int fd, got;

	for (int i = 0; i < MAX_MESSAGES && s->child.pid && !s->child.ending; i++) {
		got = child_receive(&s->child, &r, &fd);
		if (!got)
			return;
		if (got == 1) {
			got = take_reply(w, s, &r, fd);
			if (fd >= 0)
				close(fd);
			if (got == -ENOMEM)
				fail_or_wait(w, take_current(w, s), got,
					     "no memory for the worker's reply", MAX_SHORTAGES);
		}
		if (got < 0 && got != -ENOMEM)
			pool_end(w, s, got == -EPIPE ? NULL : "it sent a malformed reply");
		else
			send_next(w, s);
	}
}

static void check_time(struct worker *w, struct slot *s)
{
	uint64_t now = clock_now();

	if (!s->child.pid || s->child.ending)
		return;
	if (s->current && pool_is_late(s, now)) {
		s->timed_out = true;
		pool_end(w, s, "it does not come to an end");
	} else if (!s->current && !s->next &&
		   now >= s->idle_since + (uint64_t)w->idle_ms * 1000000) {
		pool_end(w, s, "it has nothing to do");
	}
}

/* Queues delayed requests whose pause is over, unless they need no worker. */
static void wake_delayed(struct worker *w)
{
	struct client_request **at = &w->delayed, *req;
	uint64_t now = clock_now();

	while ((req = *at)) {
		if (req->not_before > now) {
			at = (struct client_request **)(void *)&req->item.next;
			continue;
		}
		*at = (void *)req->item.next;
		if (!finish_without_worker(w, req))
			requeue(w, req);
	}
}

void worker_dispatch(struct worker *w)
{
	poller_clear(&w->poller);
	if (w->opener)
		opener_dispatch(w->opener);
	fetcher_dispatch(w->fetcher);
	w->changed = false;
	pool_read_output(w);
	pool_reap(w, on_ended);
	wake_delayed(w);
	for (int i = 0; i < POOL_SLOTS; i++) {
		receive_replies(w, &w->slots[i]);
		check_time(w, &w->slots[i]);
		send_next(w, &w->slots[i]);
	}
	pool_set_timer(w);
}

void client_cancel_all(struct worker *w)
{
	struct client_request *req;

	for (int i = 0; i < POOL_SLOTS; i++) {
		struct slot *s = &w->slots[i];

		if ((req = s->current ? s->current : s->next))
			fail(w, req, -ECANCELED, "");
		s->current = s->next = NULL;
	}
	while ((req = w->delayed)) {
		w->delayed = (void *)req->item.next;
		fail(w, req, -ECANCELED, "");
	}
	for (int i = 0; i < LANES; i++)
		while ((req = (void *)turns_take(&w->queues[i], clock_now(), true, NULL, NULL,
						 NULL)))
			fail(w, req, -ECANCELED, "");
}
