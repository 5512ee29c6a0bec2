// SPDX-License-Identifier: Apache-2.0
/* The agent's queue of requests: one under way, the others behind it; timeouts, restarts, refusals.
 */
#include "worker/client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/inspection.h"
#include "worker/names.h"
#include "worker/sandbox.h"

#define DEFAULT_IDLE_MS 2000
#define DEFAULT_REQUEST_MS 60000
#define MAX_DEATHS 2
#define MAX_SHORTAGES 5 /* what lasts for longer than 3 seconds is no moment's */
#define SHORTAGE_NS 100000000u

struct job {
	struct job *next;
	uint64_t id;
	int fds[3]; /* file, debug file, dwz file; -1 none; the caller's */
	char *name;
	struct stat st; /* of the file */
	uint8_t key[32];
	bool keyed;
	unsigned int deaths, shortages;
	void *arg;
	worker_inspected *inspected; /* one of the two */
	worker_symbolized *symbolized;
	uint64_t *addresses;
	uint32_t n;
	bool inlines;
};

/* What a job came to. */
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
	err = child_start(c, w->plugin_dir, w->memory_limit);
	if (err)
		return err;
	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->sock, &e)) {
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

void client_set_timer(struct worker *w)
{
	struct itimerspec t = {0};
	uint64_t at = 0, idle = (uint64_t)w->idle_ms * 1000000, other;

	if (w->sent)
		at = w->deadline;
	else if (w->head)
		at = w->not_before ? w->not_before : 1; /* long ago: now */
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

static void job_free(struct job *j)
{
	if (!j)
		return;
	free(j->addresses);
	free(j->name);
	free(j);
}

/* Takes the first job off the queue and tells whoever asked. The callback may ask for more. */
static void finish(struct worker *w, struct result r)
{
	struct job *j = w->head;

	w->head = j->next;
	if (!w->head)
		w->tail = &w->head;
	w->pending--;
	w->sent = false;
	w->not_before = 0;
	w->idle_since = clock_now();
	if (j->inspected)
		j->inspected(j->arg, r.err, r.text ? r.text : "", r.inspection);
	else
		j->symbolized(j->arg, r.err, r.text ? r.text : "", r.symbols);
	job_free(j);
}

static void fail(struct worker *w, int err, const char *text)
{
	finish(w, (struct result){.err = err, .text = text});
}

/* Where memory is short the first job waits and is tried again, longer each time. */
static void fail_or_wait(struct worker *w, int err, const char *text, unsigned int most)
{
	struct job *j = w->head;

	if (err != -ENOMEM || j->shortages >= most) {
		fail(w, err, text);
		return;
	}
	w->sent = false;
	w->not_before = clock_now() + ((uint64_t)SHORTAGE_NS << j->shortages++);
}

static void refuse(struct worker *w, int err, const char *text)
{
	struct job *j = w->head;

	refusals_add(&w->refusals, &j->st, j->keyed ? j->key : NULL, err, j->name, text);
	log_debug("%s is refused: %s", j->name, text);
	fail(w, err, text);
}

/* The worker can't be used any more. Whose fault it is, is the question: before it said that it is
 * ready it can't be the file's. */
static void died(struct worker *w, const char *instead)
{
	struct job *j = w->sent ? w->head : NULL;
	bool was_ready = w->child.ready;
	int err = w->child.err == -ENOMEM ? -ENOMEM : -EIO;
	char why[256], text[512], start[400];

	snprintf(start, sizeof(start), "%s", w->child.text);
	client_stop(w, &w->child, why, sizeof(why));
	w->sent = false;
	if (instead)
		snprintf(why, sizeof(why), "%s", instead);
	log_debug("worker ended: %s", why);
	if (!j)
		return;
	if (!was_ready && *start) {
		fail_or_wait(w, err, start, 1);
	} else if (!was_ready && ++j->deaths >= MAX_DEATHS) {
		snprintf(text, sizeof(text), "the worker does not start: %s", why);
		fail(w, -EIO, text);
	} else if (was_ready && ++j->deaths >= MAX_DEATHS) {
		snprintf(text, sizeof(text), "it kills the worker that looks at it: %s", why);
		refuse(w, -EFAULT, text);
	}
}

static void took_too_long(struct worker *w)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "the worker that looks at it does not come to an end in %u.%03u s",
		 w->request_ms / 1000, w->request_ms % 1000);
	client_stop(w, &w->child, NULL, 0);
	refuse(w, -ETIMEDOUT, text);
}

/* ---- sending ---- */

static int send_job(struct worker *w, struct job *j)
{
	struct protocol_request q = {.id = j->id = ++w->next_id, .inlines = j->inlines};
	int fds[3];
	int err = client_start(w, &w->child);

	if (err)
		return err;
	q.type = j->symbolized ? REQUEST_SYMBOLIZE : j->keyed ? REQUEST_INSPECT : REQUEST_KEY;
	memcpy(fds, j->fds, sizeof(fds));
	for (unsigned int i = 0, at = 0; i < 3; i++)
		if (j->fds[i] >= 0) {
			q.fds |= 1u << i;
			fds[at++] = j->fds[i];
		}
	q.payload = (uint64_t)j->n * 8;
	return protocol_send_request(w->child.sock, &q, fds, j->addresses);
}

/* An answer that costs nothing: it was refused, or lies on disk. */
static bool answer_at_once(struct worker *w, struct job *j)
{
	const struct refusal *r = refusals_find(&w->refusals, &j->st, j->keyed ? j->key : NULL);
	struct inspection *i;

	if (r) {
		fail(w, r->err, r->text);
		return true;
	}
	if (j->inspected && j->keyed && w->cache && !cache_load(w->cache, j->key, &i)) {
		finish(w, (struct result){.inspection = i});
		return true;
	}
	return false;
}

static void pump(struct worker *w)
{
	while (w->head && !w->sent && clock_now() >= w->not_before) {
		struct job *j = w->head;
		int err;

		if (answer_at_once(w, j))
			continue;
		err = send_job(w, j);
		if (err == -EPIPE || err == -ECONNRESET) {
			/* It died while it had nothing to do; or it does not start at all. */
			w->sent = !w->child.ready;
			died(w, NULL);
		} else if (err) {
			fail_or_wait(w, err, "the worker cannot be asked", MAX_SHORTAGES);
		} else {
			w->sent = true;
			w->deadline = clock_now() + (uint64_t)w->request_ms * 1000000;
		}
	}
}

/* ---- receiving ---- */

static int map_answer(const struct protocol_reply *r, int fd, void **map)
{
	return fd < 0 ? -EBADMSG : protocol_map(fd, r->bytes, map);
}

static int take_inspection(struct worker *w, const struct protocol_reply *r, int fd)
{
	struct job *j = w->head;
	struct inspection *i;
	void *map;
	int err = map_answer(r, fd, &map);

	if (!err)
		err = inspection_open(&i, map, r->bytes, j->key);
	if (err)
		return err;
	i->incomplete = r->incomplete;
	if (w->cache && r->cacheable) {
		err = cache_store(w->cache, i);
		if (err)
			log_debug("%s: not kept in the cache: %s", j->name, strerror(-err));
	}
	finish(w, (struct result){.inspection = i});
	return 0;
}

static int take_names(struct worker *w, const struct protocol_reply *r, int fd)
{
	struct worker_symbols symbols;
	void *map;
	int err = map_answer(r, fd, &map);

	if (err)
		return err;
	err = names_open(&symbols, map, r->bytes, w->head->n);
	if (!err) {
		finish(w, (struct result){.text = r->text, .symbols = &symbols});
		free((void *)symbols.frames);
	}
	munmap(map, r->bytes);
	return err;
}

/* 0; -EBADMSG: nonsense, the worker must have been taken over. */
static int take(struct worker *w, const struct protocol_reply *r, int fd)
{
	struct job *j = w->head;

	if (!w->sent || r->id != j->id)
		return -EBADMSG;
	if (r->refused_calls)
		log_debug("%s: the worker got EACCES for %u system calls, the last was %s (%u)",
			  j->name, r->refused_calls, sandbox_call_name(r->call), r->call);
	if (r->err) {
		/* the worker's own memory: it may be the file that takes it */
		fail_or_wait(w, r->err < 0 && r->err > -4096 ? r->err : -EBADMSG, r->text, 1);
		return 0;
	}
	if (j->symbolized)
		return take_names(w, r, fd);
	if (j->keyed)
		return take_inspection(w, r, fd);
	j->keyed = true;
	memcpy(j->key, r->key, sizeof(j->key));
	w->sent = false;
	return 0;
}

static void receive(struct worker *w)
{
	struct protocol_reply r;
	int fd, got;

	while (w->child.pid) {
		got = child_receive(&w->child, &r, &fd);
		if (!got)
			return;
		if (got == 1) {
			got = take(w, &r, fd);
			if (fd >= 0)
				close(fd);
			if (got == -ENOMEM)
				fail_or_wait(w, got, "no memory for its answer", MAX_SHORTAGES);
		}
		if (got < 0 && got != -ENOMEM) {
			died(w, got == -EPIPE ? NULL : "it gave an answer that makes no sense");
			return;
		}
		pump(w);
	}
}

int worker_dispatch(struct worker *w)
{
	uint64_t idle = (uint64_t)w->idle_ms * 1000000, expirations;
	struct protocol_reply r;
	int fd;

	while (read(w->timer, &expirations, sizeof(expirations)) > 0)
		;
	receive(w);
	if (w->sent && clock_now() >= w->deadline)
		took_too_long(w);
	pump(w);
	if (w->child.pid && !w->head && clock_now() >= w->idle_since + idle)
		client_stop(w, &w->child, NULL, 0);
	/* Nobody waits for the stepper here: whatever it says now, it says when it ends. */
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

/* ---- asking ---- */

static int job_new(struct job **ret, int fd, const char *name, void *arg)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->fds[0] = fd;
	j->fds[1] = j->fds[2] = -1;
	j->name = strdup(name);
	j->arg = arg;
	if (!j->name || fstat(fd, &j->st)) {
		int err = j->name ? -errno : -ENOMEM;

		job_free(j);
		return err;
	}
	*ret = j;
	return 0;
}

static void enqueue(struct worker *w, struct job *j)
{
	*w->tail = j;
	w->tail = &j->next;
	w->pending++;
	client_set_timer(w);
}

int worker_inspect(struct worker *w, int fd, const char *name, worker_inspected *done, void *arg)
{
	struct job *j;
	int err = job_new(&j, fd, name, arg);

	if (err)
		return err;
	j->inspected = done;
	enqueue(w, j);
	return 0;
}

int worker_symbolize(struct worker *w, const struct inspection *i, int fd, int debug_fd, int alt_fd,
		     const char *name, bool inlines, const uint64_t *addresses, uint32_t n,
		     worker_symbolized *done, void *arg)
{
	struct job *j;
	int err;

	if (n > NAMES_MAX_ADDRESSES)
		return -E2BIG;
	err = job_new(&j, fd, name, arg);
	if (err)
		return err;
	j->symbolized = done;
	j->fds[1] = debug_fd;
	j->fds[2] = alt_fd;
	j->inlines = inlines;
	j->keyed = i != NULL;
	if (i)
		memcpy(j->key, i->key, sizeof(j->key));
	j->n = n;
	j->addresses = malloc(n ? (size_t)n * 8 : 1);
	if (!j->addresses) {
		job_free(j);
		return -ENOMEM;
	}
	memcpy(j->addresses, addresses, (size_t)n * 8);
	enqueue(w, j);
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

/* ---- life ---- */

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
		if (err) /* slower, not wrong */
			log_warning(
				"'%s' cannot hold the cache of unwind tables: %s; going on without",
				o->cache_dir,
				err == -EPERM ? "it must be yours, and writable by nobody else"
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
