// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's queue of requests. The first is sent, the others wait; time limits, restarts of the
 * worker, refusals of files. An inspection takes two messages: REQUEST_KEY, and, where the key is
 * neither refused nor in the cache, REQUEST_INSPECT.
 */
#include "worker/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "worker/inspection.h"
#include "worker/symbolize_reply.h"
#include "worker/sandbox.h"

#define DEFAULT_IDLE_MS 2000
#define DEFAULT_REQUEST_MS 60000
#define MAX_DEATHS 2
#define MAX_SHORTAGES 5        /* retries for want of memory: after 3.1 s the request fails */
#define SHORTAGE_NS 100000000u /* until the first retry; doubled each time */

struct client_request {
	struct client_request *next;
	uint64_t id;
	int fds[3];     /* file, debug file, dwz file; -1: none; borrowed */
	char *name;     /* for messages */
	struct stat st; /* of the file */
	bool keyed;     /* the key is known */
	uint8_t key[32];
	unsigned int deaths, shortages;
	void *arg;
	worker_inspected *inspected; /* this or the next; the other is NULL */
	worker_symbolized *symbolized;
	uint64_t *addresses;
	uint32_t n; /* addresses */
	bool inlines;
};

/* How a request ended: the arguments of its callback. */
struct result {
	int err;
	const char *text;
	struct inspection *inspection;
	const struct worker_symbols *symbols;
};

/* ---- processes ---- */

int client_start(struct worker *w, struct child *c)
{
	struct epoll_event e = {.events = EPOLLIN};
	int err;

	if (c->pid)
		return 0;
	err = child_start(c, w->plugin_dir, w->memory_limit, &w->output_limit);
	if (err)
		return err;
	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->sock, &e) ||
	    epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->output.fd, &e)) {
		err = -errno;
		child_stop(c, NULL, 0);
	}
	return err;
}

void client_stop(struct worker *w, struct child *c, char *why, size_t len)
{
	if (c->pid)
		epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->sock, NULL);
	child_stop(c, why, len);
}

/* Logs what a process prints. A pipe whose other end is closed would be readable for ever. */
static void read_output(struct child *c)
{
	if (c->pid && c->output.fd >= 0 && output_read(&c->output, c->pid))
		output_close(&c->output, c->pid);
}

void client_set_timer(struct worker *w)
{
	struct itimerspec t = {0};
	uint64_t at = 0, idle = (uint64_t)w->idle_ms * 1000000, other;

	if (w->sent)
		at = w->deadline;
	else if (w->head)
		at = w->not_before ? w->not_before : 1; /* in the past; 0 would disarm */
	else if (w->child.pid)
		at = w->idle_since + idle;
	if (w->stepper.pid) {
		other = w->stepper_idle_since + idle;
		at = at && at < other ? at : other;
	}
	t.it_value.tv_sec = (time_t)(at / 1000000000u);
	t.it_value.tv_nsec = (long)(at % 1000000000u);
	timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* ---- the queue ---- */

static void request_free(struct client_request *req)
{
	if (!req)
		return;
	free(req->addresses);
	free(req->name);
	free(req);
}

/* Removes the first request from the queue and runs its callback, which may add requests. */
static void finish(struct worker *w, struct result r)
{
	struct client_request *req = w->head;

	fusee_assert(req && w->pending);
	w->head = req->next;
	if (!w->head)
		w->tail = &w->head;
	w->pending--;
	w->sent = false;
	w->not_before = 0;
	w->idle_since = clock_now();
	if (req->inspected)
		req->inspected(req->arg, r.err, r.text ? r.text : "", r.inspection);
	else
		req->symbolized(req->arg, r.err, r.text ? r.text : "", r.symbols);
	request_free(req);
}

static void fail(struct worker *w, int err, const char *text)
{
	finish(w, (struct result){.err = err, .text = text});
}

/* Fails the first request; after a lack of memory, retries it later, up to `most` times. */
static void fail_or_wait(struct worker *w, int err, const char *text, unsigned int most)
{
	struct client_request *req = w->head;

	if (err != -ENOMEM || req->shortages >= most) {
		fail(w, err, text);
		return;
	}
	w->sent = false;
	w->not_before = clock_now() + ((uint64_t)SHORTAGE_NS << req->shortages++);
}

static void refuse(struct worker *w, int err, const char *text)
{
	struct client_request *req = w->head;

	refusals_add(&w->refusals, &req->st, req->keyed ? req->key : NULL, err, req->name, text);
	log_debug("%s is refused: %s", req->name, text);
	fail(w, err, text);
}

/*
 * Ends the worker and decides what becomes of the request that was sent. A death before REPLY_READY
 * is not the file's fault. `reason` replaces the exit status in messages; NULL: the exit status.
 */
static void worker_died(struct worker *w, const char *reason)
{
	struct client_request *req = w->sent ? w->head : NULL;
	bool was_ready = w->child.ready;
	int err = w->child.err == -ENOMEM ? -ENOMEM : -EIO;
	char why[256], text[512], start[400];

	snprintf(start, sizeof(start), "%s", w->child.text);
	client_stop(w, &w->child, why, sizeof(why));
	w->sent = false;
	if (reason)
		snprintf(why, sizeof(why), "%s", reason);
	log_debug("worker ended: %s", why);
	if (!req)
		return;
	if (!was_ready && *start) {
		fail_or_wait(w, err, start, 1);
	} else if (!was_ready && ++req->deaths >= MAX_DEATHS) {
		snprintf(text, sizeof(text), "the worker does not start: %s", why);
		fail(w, -EIO, text);
	} else if (was_ready && ++req->deaths >= MAX_DEATHS) {
		snprintf(text, sizeof(text), "it kills the worker that looks at it: %s", why);
		refuse(w, -EFAULT, text);
	}
}

static void time_out(struct worker *w)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "the worker that looks at it does not come to an end in %u.%03u s",
		 w->request_ms / 1000, w->request_ms % 1000);
	client_stop(w, &w->child, NULL, 0);
	refuse(w, -ETIMEDOUT, text);
}

/* ---- sending ---- */

static int send_request(struct worker *w, struct client_request *req)
{
	struct protocol_request q = {.id = req->id = ++w->next_id, .inlines = req->inlines};
	int err = client_start(w, &w->child);

	if (err)
		return err;
	q.kind = req->symbolized ? REQUEST_SYMBOLIZE : req->keyed ? REQUEST_INSPECT : REQUEST_KEY;
	for (unsigned int i = 0; i < 3; i++)
		if (req->fds[i] >= 0)
			q.fds |= 1u << i;
	q.payload = (uint64_t)req->n * 8;
	return protocol_send_request(w->child.sock, &q, req->fds, req->addresses);
}

/* true: the request needed no worker, as the file is refused or its inspection is in the cache. */
static bool finish_without_worker(struct worker *w, struct client_request *req)
{
	const struct refusal *r = refusals_find(&w->refusals, &req->st,
						req->keyed ? req->key : NULL);
	struct inspection *i;

	if (r) {
		fail(w, r->err, r->text);
		return true;
	}
	if (req->inspected && req->keyed && w->cache && !cache_load(w->cache, req->key, &i)) {
		finish(w, (struct result){.inspection = i});
		return true;
	}
	return false;
}

static void send_next(struct worker *w)
{
	while (w->head && !w->sent && clock_now() >= w->not_before) {
		struct client_request *req = w->head;
		int err;

		if (finish_without_worker(w, req))
			continue;
		err = send_request(w, req);
		if (err == -EPIPE || err == -ECONNRESET) {
			/* The worker died while idle, or it never became ready. */
			w->sent = !w->child.ready;
			worker_died(w, NULL);
		} else if (err) {
			fail_or_wait(w, err, "no request can be sent to the worker", MAX_SHORTAGES);
		} else {
			w->sent = true;
			w->deadline = clock_now() + (uint64_t)w->request_ms * 1000000;
		}
	}
}

/* ---- receiving ---- */

static int map_block(const struct protocol_reply *r, int fd, void **map)
{
	return fd < 0 ? -EBADMSG : protocol_map(fd, r->bytes, map);
}

static int take_inspection(struct worker *w, const struct protocol_reply *r, int fd)
{
	struct client_request *req = w->head;
	struct inspection *i;
	void *map;
	int err = map_block(r, fd, &map);

	if (!err)
		err = inspection_open(&i, map, r->bytes, req->key);
	if (err)
		return err;
	i->incomplete = r->incomplete;
	if (w->cache && r->cacheable) {
		err = cache_store(w->cache, i);
		if (err)
			log_debug("%s: not kept in the cache: %s", req->name, strerror(-err));
	}
	finish(w, (struct result){.inspection = i});
	return 0;
}

static int take_symbols(struct worker *w, const struct protocol_reply *r, int fd)
{
	struct worker_symbols symbols;
	void *map;
	int err = map_block(r, fd, &map);

	if (err)
		return err;
	err = symbolize_reply_open(&symbols, map, r->bytes, w->head->n);
	if (!err) {
		finish(w, (struct result){.text = r->text, .symbols = &symbols});
		free((void *)symbols.frames);
	}
	munmap(map, r->bytes);
	return err;
}

/* 0; -EBADMSG: no valid worker sends this reply; a file may have taken the worker over. */
static int take_reply(struct worker *w, const struct protocol_reply *r, int fd)
{
	struct client_request *req = w->head;

	if (!w->sent || r->id != req->id)
		return -EBADMSG;
	if (r->refused_calls)
		log_debug("%s: the worker got EACCES for %u system calls, the last was %s (%u)",
			  req->name, r->refused_calls, sandbox_call_name(r->call), r->call);
	if (r->err) {
		/* -ENOMEM: the worker's own limit, which the file may exceed each time. */
		fail_or_wait(w, r->err < 0 && r->err > -4096 ? r->err : -EBADMSG, r->text, 1);
		return 0;
	}
	if (req->symbolized)
		return take_symbols(w, r, fd);
	if (req->keyed)
		return take_inspection(w, r, fd);
	req->keyed = true;
	memcpy(req->key, r->key, sizeof(req->key));
	w->sent = false;
	return 0;
}

static void receive_replies(struct worker *w)
{
	struct protocol_reply r;
	int fd, got;

	while (w->child.pid) {
		got = child_receive(&w->child, &r, &fd);
		if (!got)
			return;
		if (got == 1) {
			got = take_reply(w, &r, fd);
			if (fd >= 0)
				close(fd);
			if (got == -ENOMEM)
				fail_or_wait(w, got, "no memory for the worker's reply",
					     MAX_SHORTAGES);
		}
		if (got < 0 && got != -ENOMEM) {
			worker_died(w, got == -EPIPE ? NULL : "it sent a malformed reply");
			return;
		}
		send_next(w);
	}
}

int worker_dispatch(struct worker *w)
{
	uint64_t idle = (uint64_t)w->idle_ms * 1000000, expirations;
	struct protocol_reply r;
	int fd;

	while (read(w->timer, &expirations, sizeof(expirations)) > 0)
		;
	read_output(&w->child);
	read_output(&w->stepper);
	receive_replies(w);
	if (w->sent && clock_now() >= w->deadline)
		time_out(w);
	send_next(w);
	if (w->child.pid && !w->head && clock_now() >= w->idle_since + idle)
		client_stop(w, &w->child, NULL, 0);
	/* No step is under way here: a message of the stepper means that it ends. */
	if (w->stepper.pid &&
	    (child_receive(&w->stepper, &r, &fd) || clock_now() >= w->stepper_idle_since + idle))
		client_stop(w, &w->stepper, NULL, 0);
	client_set_timer(w);
	return 0;
}

int worker_wait(struct worker *w)
{
	while (w->pending) {
		struct pollfd p = {.fd = w->epoll, .events = POLLIN};
		int err;

		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -errno;
		err = worker_dispatch(w);
		if (err)
			return err;
	}
	return 0;
}

/* ---- requests ---- */

static int request_new(struct client_request **ret, int fd, const char *name, void *arg)
{
	struct client_request *req = calloc(1, sizeof(*req));

	if (!req)
		return -ENOMEM;
	req->fds[0] = fd;
	req->fds[1] = req->fds[2] = -1;
	req->name = strdup(name);
	req->arg = arg;
	if (!req->name || fstat(fd, &req->st)) {
		int err = req->name ? -errno : -ENOMEM;

		request_free(req);
		return err;
	}
	*ret = req;
	return 0;
}

static void enqueue(struct worker *w, struct client_request *req)
{
	*w->tail = req;
	w->tail = &req->next;
	w->pending++;
	client_set_timer(w);
}

int worker_inspect(struct worker *w, int fd, const char *name, worker_inspected *done, void *arg)
{
	struct client_request *req;
	int err = request_new(&req, fd, name, arg);

	if (err)
		return err;
	req->inspected = done;
	enqueue(w, req);
	return 0;
}

int worker_symbolize(struct worker *w, const struct inspection *i, int fd, int debug_fd, int alt_fd,
		     const char *name, bool inlines, const uint64_t *addresses, uint32_t n,
		     worker_symbolized *done, void *arg)
{
	struct client_request *req;
	int err;

	if (n > SYMBOLIZE_MAX_ADDRESSES)
		return -E2BIG;
	err = request_new(&req, fd, name, arg);
	if (err)
		return err;
	req->symbolized = done;
	req->fds[1] = debug_fd;
	req->fds[2] = alt_fd;
	req->inlines = inlines;
	req->keyed = i != NULL;
	if (i)
		memcpy(req->key, i->key, sizeof(req->key));
	req->n = n;
	req->addresses = malloc(n ? (size_t)n * 8 : 1);
	if (!req->addresses) {
		request_free(req);
		return -ENOMEM;
	}
	memcpy(req->addresses, addresses, (size_t)n * 8);
	enqueue(w, req);
	return 0;
}

uint32_t worker_pending(const struct worker *w)
{
	return w->pending;
}

int worker_pid(const struct worker *w)
{
	return w->child.pid;
}

int worker_fd(const struct worker *w)
{
	return w->epoll;
}

void worker_refused(const struct worker *w,
		    void (*each)(void *arg, const char *name, const char *text), void *arg)
{
	for (const struct refusal *r = w->refusals.first; r; r = r->next)
		each(arg, r->name, r->text);
}

/* ---- the object ---- */

static int make_descriptors(struct worker *w)
{
	struct epoll_event e = {.events = EPOLLIN};

	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		return -errno;
	w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->timer < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->timer, &e))
		return -errno;
	return 0;
}

int worker_new(struct worker **ret, const struct worker_options *o)
{
	struct worker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->epoll = w->timer = -1;
	w->tail = &w->head;
	w->memory_limit = o->memory_limit;
	w->idle_ms = o->idle_ms ? o->idle_ms : DEFAULT_IDLE_MS;
	w->request_ms = o->request_ms ? o->request_ms : DEFAULT_REQUEST_MS;
	w->plugin_dir = o->plugin_dir ? strdup(o->plugin_dir) : NULL;
	err = o->plugin_dir && !w->plugin_dir ? -ENOMEM : make_descriptors(w);
	if (err) {
		worker_stop(w);
		return err;
	}
	if (o->cache_dir) {
		err = cache_open(&w->cache, o->cache_dir, CACHE_DEFAULT_BYTES);
		if (err) /* without a cache the worker is slower, not wrong */
			log_warning(
				"'%s' cannot hold the cache of unwind tables: %s; going on without",
				o->cache_dir,
				err == -EPERM ? "it must be yours, and not writable by others"
					      : strerror(-err));
	}
	*ret = w;
	return 0;
}

void worker_stop(struct worker *w)
{
	if (!w)
		return;
	while (w->head)
		fail(w, -ECANCELED, "");
	client_stop(w, &w->child, NULL, 0);
	client_stop(w, &w->stepper, NULL, 0);
	refusals_fini(&w->refusals);
	cache_close(w->cache);
	if (w->timer >= 0)
		close(w->timer);
	if (w->epoll >= 0)
		close(w->epoll);
	free(w->plugin_dir);
	free(w);
}
