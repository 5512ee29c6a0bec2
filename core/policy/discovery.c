/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/discovery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/hashmap.h"
#include "plugin/plugin.h"
#include "policy/internal/discovery_text.h"

#define SLOW_NS 50000000ull /* a callback that takes longer is counted as slow */
#define SECOND_NS 1000000000ull
#define BACKOFF_NS SECOND_NS
#define COUNT_NS SECOND_NS /* between two additions to the metrics */
#define BACKOFF_MAX_NS 300000000000ull

enum {
	MAX_FAILURES = 3, /* consecutive failures after which an instance is called less often */
	MAX_TEXTS = 64,   /* distinct errors of one instance that are logged */
	MAX_FDS = 4096,   /* of one instance */
};

enum callback { CALL_START, CALL_READY, CALL_TICK, CALL_PROCESS };

/* A descriptor of an instance. */
struct watched {
	struct discovery *d;
	int fd;
	uint32_t events, failures;
	struct loop_watch *watch; /* NULL: paused */
	struct loop_timer *pause; /* the end of the pause */
};

struct discovery {
	struct discovery_context *context;
	/* Read by host_wake() from other threads; constant from start() to fini(). */
	int wake; /* eventfd */
	struct fusee_instance *in;
	const struct fusee_discovery_ops *ops;
	uint32_t source;        /* in the targets */
	struct hashmap watches; /* fd -> struct watched * */
	struct loop_watch *wake_watch;
	struct loop_timer *timer;
	uint64_t period;
	uint64_t not_before; /* ticks before this time (CLOCK_MONOTONIC ns) are skipped */
	uint32_t failures;   /* consecutive failed ticks */
	char *error;
	enum callback failed;      /* the callback that failed with `error` */
	uint64_t texts[MAX_TEXTS]; /* hashes of the errors that were logged */
	uint32_t ntexts;
	uint64_t longest_ns;
	struct {
		uint64_t calls, ns, counted_ns; /* when they were counted */
	} uncounted;                            /* callbacks that are not in the metrics yet */
};

static const char *name_of(const struct discovery *d)
{
	return d->in->name;
}

/* ---- callbacks ---- */

void discovery_count(struct discovery *d)
{
	const struct metric_labels *labels = METRIC_LABELS("instance", name_of(d));

	metric_add("discovery_callbacks_total",
		   "Total number of callbacks of a discovery instance.", labels,
		   d->uncounted.calls);
	metric_add("discovery_callback_nanoseconds_total",
		   "Total time in nanoseconds spent in callbacks of a discovery instance.", labels,
		   d->uncounted.ns);
	d->uncounted.calls = d->uncounted.ns = 0;
}

/* The texts of metrics cost more than most callbacks. */
static void account(struct discovery *d, uint64_t began, uint64_t ended)
{
	const struct metric_labels *labels = METRIC_LABELS("instance", name_of(d));
	uint64_t ns = ended - began;

	d->uncounted.calls++;
	d->uncounted.ns += ns;
	if (ended - d->uncounted.counted_ns >= COUNT_NS) {
		discovery_count(d);
		d->uncounted.counted_ns = ended;
	}
	if (ns > d->longest_ns) {
		d->longest_ns = ns;
		metric_set("discovery_callback_seconds",
			   "Duration in seconds of the longest callback of a discovery instance.",
			   labels, (double)ns / 1e9);
	}
	if (ns > SLOW_NS)
		metric_add("discovery_slow_callbacks_total",
			   "Total number of callbacks of a discovery instance that took more than "
			   "50 ms.",
			   labels, 1);
}

/* FNV-1a, to recognize a text that was logged before. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash;
}

/* Logs each distinct text once, up to MAX_TEXTS: texts with numbers in them may all differ. */
static void log_once(struct discovery *d, const char *text)
{
	uint64_t hash = hash_of(text);

	for (uint32_t i = 0; i < d->ntexts; i++)
		if (d->texts[i] == hash)
			return;
	if (d->ntexts == MAX_TEXTS)
		return;
	d->texts[d->ntexts++] = hash;
	log_warning("%s", text);
	if (d->ntexts == MAX_TEXTS)
		log_warning("%s: further errors are counted only", name_of(d));
}

static void failed(struct discovery *d, enum callback which, int err)
{
	char *text = instance_sentence(d->in, err);

	metric_add("discovery_errors_total",
		   "Total number of callbacks of a discovery instance that failed.",
		   METRIC_LABELS("instance", name_of(d)), 1);
	if (!text)
		return;
	log_once(d, text);
	free(d->error);
	d->error = text;
	d->failed = which;
}

struct call {
	enum callback which;
	int fd;
	uint32_t events;
	const struct fusee_process_event *event;
};

static int run(const struct discovery *d, const struct call *c)
{
	const struct fusee_discovery_ops *ops = d->ops;
	void *ctx = d->in->ctx;

	switch (c->which) {
	case CALL_START:
		return FUSEE_HAS(ops, start) && ops->start ? ops->start(ctx) : 0;
	case CALL_READY:
		return FUSEE_HAS(ops, ready) && ops->ready ? ops->ready(ctx, c->fd, c->events) : 0;
	case CALL_TICK:
		return FUSEE_HAS(ops, tick) && ops->tick ? ops->tick(ctx) : 0;
	case CALL_PROCESS:
		return FUSEE_HAS(ops, process) && ops->process ? ops->process(ctx, c->event) : 0;
	}
	return 0;
}

/* Runs and times the callback. 0 or -errno; a positive return value becomes -EINVAL. */
static int call(struct discovery *d, const struct call *c)
{
	uint64_t began = clock_now(), targets = targets_generation(d->context->targets);
	int r;

	free(d->in->error); /* of a host call whose failure the instance ignored */
	d->in->error = NULL;
	d->context->running = d;
	r = run(d, c);
	d->context->running = NULL;
	account(d, began, clock_now());
	if (c->which != CALL_PROCESS && d->context->changed &&
	    targets != targets_generation(d->context->targets))
		d->context->changed(d->context->changed_arg);
	return r > 0 ? -EINVAL : r;
}

/* call(), with its error counted and logged. */
static int call_and_log(struct discovery *d, const struct call *c)
{
	int r = call(d, c);

	if (r) {
		failed(d, c->which, r);
	} else if (d->error && d->failed == c->which) {
		free(d->error);
		d->error = NULL;
	}
	return r;
}

static uint64_t backoff(uint64_t first, uint32_t failures)
{
	uint64_t ns = first;

	for (uint32_t i = MAX_FAILURES; i <= failures && ns < BACKOFF_MAX_NS; i++)
		ns *= 2;
	return ns < BACKOFF_MAX_NS ? ns : BACKOFF_MAX_NS;
}

/* ---- timers ---- */

static void on_timer(void *arg)
{
	struct discovery *d = arg;
	uint64_t first = d->period > BACKOFF_NS ? d->period : BACKOFF_NS;

	if (clock_now() < d->not_before)
		return;
	if (!call_and_log(d, &(struct call){.which = CALL_TICK})) {
		d->failures = 0;
		return;
	}
	if (++d->failures >= MAX_FAILURES) /* half a period early, because timers fire late */
		d->not_before = clock_now() + backoff(first, d->failures) - first / 2;
}

/* ---- descriptors ---- */

static void on_pause_over(void *arg);

static void on_ready(void *arg, int fd, uint32_t events)
{
	struct watched *w = arg;
	struct discovery *d = w->d;
	int r = call_and_log(d, &(struct call){.which = CALL_READY, .fd = fd, .events = events});

	w = hashmap_get(&d->watches, (uint64_t)fd); /* ready() may have removed it */
	if (!w)
		return;
	w->failures = r ? w->failures + 1 : 0;
	/* A descriptor that ready() fails to read is ready again at once. It is paused, so that it
	 * does not occupy the control thread. */
	if (w->failures < MAX_FAILURES || !w->watch ||
	    loop_at(d->context->loop, clock_now() + backoff(BACKOFF_NS / 2, w->failures),
		    on_pause_over, w, &w->pause))
		return;
	loop_unwatch(w->watch);
	w->watch = NULL;
}

static void on_pause_over(void *arg)
{
	struct watched *w = arg;
	struct discovery *d = w->d;
	int r = loop_watch(d->context->loop, w->fd, w->events, on_ready, w, &w->watch);

	w->pause = NULL;
	if (!r || (r == -ENOMEM && !loop_at(d->context->loop, clock_now() + BACKOFF_NS,
					    on_pause_over, w, &w->pause)))
		return;
	hashmap_del(&d->watches, (uint64_t)w->fd); /* closed during the pause */
	free(w);
}

static void on_wake(void *arg, int fd, uint32_t events)
{
	uint64_t n;

	(void)events;
	if (read(fd, &n, sizeof(n)) == sizeof(n))
		call_and_log(arg, &(struct call){.which = CALL_READY, .fd = -1});
}

static void unwatch(void *arg, uint64_t fd, void *value)
{
	struct watched *w = value;

	(void)arg;
	(void)fd;
	loop_unwatch(w->watch);
	loop_timer_free(w->pause);
	free(w);
}

/* ---- calls of an instance to the host ---- */

/* NULL: the instance calls outside of its own callbacks. */
static struct discovery *caller(const struct fusee_instance *in)
{
	struct discovery *d = in->owner;

	return d && d->context->running == d ? d : NULL;
}

static int host_begin(struct fusee_instance *in)
{
	struct discovery *d = caller(in);

	if (!d)
		return -EPERM;
	targets_begin(d->context->targets, d->source);
	return 0;
}

static int host_put(struct fusee_instance *in, const struct fusee_target *t)
{
	struct discovery *d = caller(in);
	const char *why = NULL;
	int r;

	if (!d)
		return -EPERM;
	r = targets_put(d->context->targets, d->source, t, &why);
	if (!r)
		return !d->context->early && FUSEE_HAS(t, later) && t->later.n;
	metric_add("discovery_targets_refused_total",
		   "Total number of targets of a discovery instance that were refused.",
		   METRIC_LABELS("instance", name_of(d), "reason",
				 r == -ENOSPC   ? "too many"
				 : r == -EDQUOT ? "too many label texts"
				 : r == -EINVAL ? "not valid"
						: "no memory"),
		   1);
	return plugin_host_fail(in, r,
				why            ? why
				: r == -ENOSPC ? "there are 200,000 targets already"
				: r == -EDQUOT ? "labels of the process's user, or of all, take "
						 "too much memory"
					       : strerror(-r));
}

static int host_del(struct fusee_instance *in, struct fusee_str key)
{
	struct discovery *d = caller(in);

	return d ? targets_del(d->context->targets, d->source, key) : -EPERM;
}

static int host_commit(struct fusee_instance *in)
{
	struct discovery *d = caller(in);

	if (!d)
		return -EPERM;
	targets_commit(d->context->targets, d->source);
	return 0;
}

static int change_watch(struct discovery *d, struct watched *w, uint32_t events)
{
	int r;

	w->events = events;
	if (w->pause)
		return 0;
	r = loop_watch_events(w->watch, events);
	if (r != -ENOENT)
		return r;
	/* The instance closed the descriptor without unwatching it, and its number was reused. */
	loop_unwatch(w->watch);
	w->watch = NULL;
	r = loop_watch(d->context->loop, w->fd, events, on_ready, w, &w->watch);
	if (r)
		unwatch(NULL, 0, hashmap_del(&d->watches, (uint64_t)w->fd));
	return r;
}

static int host_watch_fd(struct fusee_instance *in, int fd, uint32_t events)
{
	struct discovery *d = caller(in);
	struct watched *w;
	int r = -ENOMEM;

	if (!d)
		return -EPERM;
	if (fd < 0)
		return -EBADF;
	w = hashmap_get(&d->watches, (uint64_t)fd);
	if (w && events)
		return change_watch(d, w, events);
	if (w) {
		unwatch(NULL, 0, hashmap_del(&d->watches, (uint64_t)fd));
		return 0;
	}
	if (!events)
		return -ENOENT;
	if (d->watches.n == MAX_FDS)
		return -EMFILE;
	w = calloc(1, sizeof(*w));
	if (!w)
		return r;
	*w = (struct watched){.d = d, .fd = fd, .events = events};
	r = loop_watch(d->context->loop, fd, events, on_ready, w, &w->watch);
	if (!r && hashmap_put(&d->watches, (uint64_t)fd, w)) {
		loop_unwatch(w->watch);
		r = -ENOMEM;
	}
	if (r)
		free(w);
	return r;
}

/* Timers of seconds are due with those of the agent, so that its thread wakes up once for all. */
static int every(struct discovery *d, uint64_t period_ns, struct loop_timer **timer)
{
	uint64_t first;

	if (period_ns < SECOND_NS ||
	    __builtin_add_overflow(clock_now() + SECOND_NS - 1, period_ns, &first))
		return loop_every(d->context->loop, period_ns, on_timer, d, timer);
	return loop_every_from(d->context->loop, first / SECOND_NS * SECOND_NS, period_ns, on_timer,
			       d, timer);
}

static int host_timer(struct fusee_instance *in, uint64_t period_ns)
{
	struct discovery *d = caller(in);
	struct loop_timer *timer = NULL;
	int r;

	if (!d)
		return -EPERM;
	r = period_ns ? every(d, period_ns, &timer) : 0;
	if (r)
		return r;
	loop_timer_free(d->timer);
	d->timer = timer;
	d->period = period_ns;
	return 0;
}

static int host_wake(struct fusee_instance *in)
{
	struct discovery *d = in->owner;
	uint64_t n = 1;

	if (!d)
		return -EPERM;
	/* -EAGAIN: the eventfd is readable anyway */
	return write(d->wake, &n, sizeof(n)) < 0 && errno != EAGAIN ? -errno : 0;
}

static int64_t host_process_text(struct fusee_instance *in, uint32_t pid, const char *name,
				 uint64_t offset, void *buf, uint64_t len)
{
	struct discovery *d = caller(in);
	char text[160];
	int64_t r;

	if (!d)
		return -EPERM;
	r = discovery_text(d->context->opener, (pid_t)pid, name, offset, buf, len);
	if (r == -ETIMEDOUT) {
		snprintf(text, sizeof(text),
			 "%.64s: the %s of process %u could not be read: no answer in time",
			 name_of(d), name, pid);
		log_once(d, text);
	}
	return r;
}

static int host_profile(struct fusee_instance *in, const struct fusee_pprof *p, char *why,
			uint32_t cap)
{
	const struct discovery *d = in->owner;

	if (!d || !d->context->profile) {
		snprintf(why, cap, "nothing takes profiles here");
		return -EPERM;
	}
	return p ? d->context->profile(d->context->profile_arg, p, why, cap) : 0;
}

const struct fusee_discovery_host discovery_host = {
	.size = sizeof(discovery_host),
	.begin = host_begin,
	.put = host_put,
	.del = host_del,
	.commit = host_commit,
	.watch_fd = host_watch_fd,
	.timer = host_timer,
	.wake = host_wake,
	.process_text = host_process_text,
	.profile = host_profile,
};

/* ---- the instance ---- */

static int open_wake(struct discovery *d)
{
	d->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->wake < 0)
		return -errno;
	return loop_watch(d->context->loop, d->wake, EPOLLIN, on_wake, d, &d->wake_watch);
}

int discovery_new(struct discovery **ret, struct discovery_context *context,
		  struct fusee_instance *in, uint32_t source, char **text)
{
	struct discovery *d = calloc(1, sizeof(*d));
	void *owner = in->owner;
	int r = -ENOMEM;

	if (d) {
		*d = (struct discovery){.context = context,
					.wake = -1,
					.in = in,
					.ops = in->descriptor->ops,
					.source = source};
		r = open_wake(d);
	}
	if (!r) {
		in->owner = d;
		r = call(d, &(struct call){.which = CALL_START});
	}
	*text = r ? instance_sentence(in, r) : NULL;
	if (r) {
		in->owner = owner;
		if (d)
			d->in = NULL;
		discovery_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

void discovery_free(struct discovery *d)
{
	if (!d)
		return;
	hashmap_each(&d->watches, unwatch, NULL);
	hashmap_fini(&d->watches);
	loop_timer_free(d->timer);
	loop_unwatch(d->wake_watch);
	instance_free(d->in); /* ends its threads, which may call host_wake() until this returns */
	targets_forget(d->context->targets, d->source);
	if (d->wake >= 0)
		close(d->wake);
	free(d->error);
	free(d);
}

bool discovery_has_process(const struct discovery *d)
{
	return FUSEE_HAS(d->ops, process) && d->ops->process &&
	       d->ops->flags & FUSEE_DISCOVERY_PROCESSES;
}

int discovery_process(struct discovery *d, const struct fusee_process_event *event)
{
	return call_and_log(d, &(struct call){.which = CALL_PROCESS, .event = event});
}

void discovery_process_failed(struct discovery *d, int err, const char *sentence)
{
	failed(d, CALL_PROCESS, plugin_host_fail(d->in, err, sentence));
}

const struct fusee_instance *discovery_instance(const struct discovery *d)
{
	return d->in;
}

uint32_t discovery_source(const struct discovery *d)
{
	return d->source;
}

bool discovery_synced(const struct discovery *d)
{
	return targets_synced(d->context->targets, d->source);
}

void discovery_publish(struct discovery *d)
{
	targets_commit(d->context->targets, d->source);
}

uint32_t discovery_targets(const struct discovery *d)
{
	return targets_count_of(d->context->targets, d->source);
}

const char *discovery_error(const struct discovery *d)
{
	return d->error ? d->error : "";
}
