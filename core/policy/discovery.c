/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: all of the control thread, but host_wake(), which any of a plugin's threads may call
 * until its fini() has ended: it reads the instance's owner and that one's `wake`, which do not
 * change between start() and fini().
 */
#include "policy/discovery.h"

#include <errno.h>
#include <signal.h>
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
#include "process/procfs.h"

#define SLOW_NS 50000000ull /* what a callback may take */
#define BACKOFF_NS 1000000000ull
#define BACKOFF_MOST_NS 300000000000ull

enum {
	PATIENCE = 3,   /* failures in a row until the pauses begin */
	MAX_TEXTS = 64, /* distinct errors of one instance that are logged */
	MAX_FDS = 4096, /* of one instance */
	MAX_MISSED = 256,
};

enum callback { CALL_START, CALL_READY, CALL_TICK, CALL_PROCESS };

struct watched {
	struct discovery_source *d;
	int fd;
	uint32_t events, failures;
	struct loop_watch *watch; /* NULL: it pauses */
	struct loop_timer *pause; /* until it is watched again */
};

struct discovery_source {
	struct discovery *all;
	struct discovery_source *next;
	struct fusee_instance *in; /* NULL: the caller's (again) */
	const struct fusee_discovery_ops *ops;
	uint32_t source; /* in the targets */
	struct hashmap watches;
	struct loop_timer *timer;
	uint64_t period;
	uint64_t not_before; /* after failures: no tick until then */
	uint32_t failures;   /* ticks in a row */
	int wake;            /* eventfd */
	struct loop_watch *wake_watch;
	char *error;
	enum callback failed; /* what `error` came of */
	uint64_t texts[MAX_TEXTS];
	uint32_t ntexts;
	uint64_t longest_ns;
	/* what it had no memory for */
	uint32_t missed[MAX_MISSED], nmissed;
	bool missed_all, missed_sync; /* more than fit; SYNC */
};

struct discovery {
	struct loop *loop;
	struct targets *targets;
	struct discovery_source *first, **last;
	struct discovery_source
		*running; /* whose callback is under way: only its host calls count */
	uint32_t sources; /* given out */
};

static const char *name_of(const struct discovery_source *d)
{
	return d->in->name;
}

/* ---- callbacks ---- */

static void account(struct discovery_source *d, uint64_t ns)
{
	const struct metric_labels *labels = METRIC_LABELS("instance", name_of(d));

	metric_add("discovery_callbacks_total", "Calls of a discovery instance.", labels, 1);
	metric_add("discovery_callback_nanoseconds_total",
		   "Time spent in the calls of a discovery instance.", labels, ns);
	if (ns > d->longest_ns) {
		d->longest_ns = ns;
		metric_set("discovery_callback_seconds",
			   "The longest call of a discovery instance so far.", labels,
			   (double)ns / 1e9);
	}
	if (ns > SLOW_NS)
		metric_add("discovery_slow_callbacks_total",
			   "Calls of a discovery instance that took longer than 50 ms.", labels, 1);
}

/* FNV-1a: only to know a text again. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash;
}

/* Once for each distinct text; texts with a number in them may be distinct without end. */
static void log_once(struct discovery_source *d, const char *text)
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

static void failed(struct discovery_source *d, enum callback which, int err)
{
	char *text = instance_sentence(d->in, err);

	metric_add("discovery_errors_total", "Calls of a discovery instance that failed.",
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

static int run(const struct discovery_source *d, const struct call *c)
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

/* The callback, timed. What it returns is 0 or -errno: anything else counts as -EINVAL. */
static int call(struct discovery_source *d, const struct call *c)
{
	uint64_t began = clock_now();
	int r;

	free(d->in->error); /* of a host call that failed and did not matter */
	d->in->error = NULL;
	d->all->running = d;
	r = run(d, c);
	d->all->running = NULL;
	account(d, clock_now() - began);
	return r > 0 ? -EINVAL : r;
}

/* ... and its error said. */
static int call_and_tell(struct discovery_source *d, const struct call *c)
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

	for (uint32_t i = PATIENCE; i <= failures && ns < BACKOFF_MOST_NS; i++)
		ns *= 2;
	return ns < BACKOFF_MOST_NS ? ns : BACKOFF_MOST_NS;
}

/* ---- timers ---- */

static void on_timer(void *arg)
{
	struct discovery_source *d = arg;
	uint64_t first = d->period > BACKOFF_NS ? d->period : BACKOFF_NS;

	if (clock_now() < d->not_before)
		return;
	if (!call_and_tell(d, &(struct call){.which = CALL_TICK})) {
		d->failures = 0;
		return;
	}
	if (++d->failures >= PATIENCE) /* half a period earlier: timers come late, too */
		d->not_before = clock_now() + backoff(first, d->failures) - first / 2;
}

/* ---- descriptors ---- */

static void on_pause_over(void *arg);

static void on_ready(void *arg, int fd, uint32_t events)
{
	struct watched *w = arg;
	struct discovery_source *d = w->d;
	int r = call_and_tell(d, &(struct call){.which = CALL_READY, .fd = fd, .events = events});

	w = hashmap_get(&d->watches, (uint64_t)fd); /* it may have taken it away */
	if (!w)
		return;
	w->failures = r ? w->failures + 1 : 0;
	/* what it does not read is there at once again: without a pause we would do nothing else */
	if (w->failures < PATIENCE || !w->watch ||
	    loop_at(d->all->loop, clock_now() + backoff(BACKOFF_NS / 2, w->failures), on_pause_over,
		    w, &w->pause))
		return;
	loop_unwatch(w->watch);
	w->watch = NULL;
}

static void on_pause_over(void *arg)
{
	struct watched *w = arg;
	struct discovery_source *d = w->d;
	int r = loop_watch(d->all->loop, w->fd, w->events, on_ready, w, &w->watch);

	w->pause = NULL;
	if (!r || (r == -ENOMEM &&
		   !loop_at(d->all->loop, clock_now() + BACKOFF_NS, on_pause_over, w, &w->pause)))
		return;
	hashmap_del(&d->watches, (uint64_t)w->fd); /* closed meanwhile */
	free(w);
}

static void on_wake(void *arg, int fd, uint32_t events)
{
	uint64_t n;

	(void)events;
	if (read(fd, &n, sizeof(n)) == sizeof(n))
		call_and_tell(arg, &(struct call){.which = CALL_READY, .fd = -1});
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

/* ---- what an instance may call ---- */

/* NULL: not in a callback of its own. */
static struct discovery_source *caller(const struct fusee_instance *in)
{
	struct discovery_source *d = in->owner;

	return d && d->all->running == d ? d : NULL;
}

static int host_begin(struct fusee_instance *in)
{
	struct discovery_source *d = caller(in);

	if (!d)
		return -EPERM;
	targets_begin(d->all->targets, d->source);
	return 0;
}

static int host_put(struct fusee_instance *in, const struct fusee_target *t)
{
	struct discovery_source *d = caller(in);
	const char *why = NULL;
	int r;

	if (!d)
		return -EPERM;
	r = targets_put(d->all->targets, d->source, t, &why);
	if (!r)
		return 0;
	metric_add("discovery_targets_refused_total",
		   "Targets that a discovery instance put and that were not taken.",
		   METRIC_LABELS("instance", name_of(d), "reason",
				 r == -ENOSPC   ? "too many"
				 : r == -EINVAL ? "not valid"
						: "no memory"),
		   1);
	return plugin_host_fail(in, r,
				why            ? why
				: r == -ENOSPC ? "there are 200,000 targets already"
					       : strerror(-r));
}

static int host_del(struct fusee_instance *in, struct fusee_str key)
{
	struct discovery_source *d = caller(in);

	return d ? targets_del(d->all->targets, d->source, key) : -EPERM;
}

static int host_commit(struct fusee_instance *in)
{
	struct discovery_source *d = caller(in);

	if (!d)
		return -EPERM;
	targets_commit(d->all->targets, d->source);
	return 0;
}

static int change_watch(struct discovery_source *d, struct watched *w, uint32_t events)
{
	int r;

	w->events = events;
	if (w->pause)
		return 0;
	r = loop_watch_events(w->watch, events);
	if (r != -ENOENT)
		return r;
	/* closed without a word, and its number is in use again */
	loop_unwatch(w->watch);
	w->watch = NULL;
	r = loop_watch(d->all->loop, w->fd, events, on_ready, w, &w->watch);
	if (r)
		unwatch(NULL, 0, hashmap_del(&d->watches, (uint64_t)w->fd));
	return r;
}

static int host_watch_fd(struct fusee_instance *in, int fd, uint32_t events)
{
	struct discovery_source *d = caller(in);
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
	r = loop_watch(d->all->loop, fd, events, on_ready, w, &w->watch);
	if (!r && hashmap_put(&d->watches, (uint64_t)fd, w)) {
		loop_unwatch(w->watch);
		r = -ENOMEM;
	}
	if (r)
		free(w);
	return r;
}

static int host_timer(struct fusee_instance *in, uint64_t period_ns)
{
	struct discovery_source *d = caller(in);
	struct loop_timer *timer = NULL;
	int r;

	if (!d)
		return -EPERM;
	r = period_ns ? loop_every(d->all->loop, period_ns, on_timer, d, &timer) : 0;
	if (r)
		return r;
	loop_timer_free(d->timer);
	d->timer = timer;
	d->period = period_ns;
	return 0;
}

static int host_wake(struct fusee_instance *in)
{
	struct discovery_source *d = in->owner;
	uint64_t one = 1;

	if (!d)
		return -EPERM;
	/* -EAGAIN: it is readable anyway */
	return write(d->wake, &one, sizeof(one)) < 0 && errno != EAGAIN ? -errno : 0;
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
};

/* ---- instances ---- */

static void unlink_discoverer(struct discovery *all, struct discovery_source *d)
{
	struct discovery_source **at = &all->first;

	while (*at && *at != d)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = d->next;
	if (all->last == &d->next)
		all->last = at;
}

/* A reload may have made another one of that name before this one goes. */
static void forget_metrics(const struct discovery_source *d)
{
	for (const struct discovery_source *o = d->all->first; o; o = o->next)
		if (o != d && !strcmp(name_of(o), name_of(d)))
			return;
	metric_forget("instance", name_of(d));
}

/* With its instance, if it has one; that ends its threads, so that nobody wakes it any more. */
static void discoverer_free(struct discovery_source *d)
{
	unlink_discoverer(d->all, d);
	hashmap_each(&d->watches, unwatch, NULL);
	hashmap_fini(&d->watches);
	loop_timer_free(d->timer);
	loop_unwatch(d->wake_watch);
	if (d->in)
		forget_metrics(d);
	instance_free(d->in);
	targets_forget(d->all->targets, d->source);
	if (d->wake >= 0)
		close(d->wake);
	free(d->error);
	free(d);
}

static int discoverer_new(struct discovery *all, struct fusee_instance *in,
			  struct discovery_source **ret)
{
	struct discovery_source *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->all = all;
	d->ops = in->descriptor->ops;
	d->source = ++all->sources;
	d->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = d->wake < 0 ? -errno
			: loop_watch(all->loop, d->wake, EPOLLIN, on_wake, d, &d->wake_watch);
	if (r) {
		discoverer_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

static bool wants_processes(const struct discovery_source *d)
{
	return FUSEE_HAS(d->ops, process) && d->ops->process &&
	       d->ops->flags & FUSEE_DISCOVERY_PROCESSES;
}

/* It is told again later. */
static void miss(struct discovery_source *d, const struct fusee_process_event *e)
{
	if (e->kind == FUSEE_PROCESS_SYNC)
		d->missed_sync = true;
	else if (d->nmissed == MAX_MISSED)
		d->missed_all = true;
	else
		d->missed[d->nmissed++] = e->pid;
}

static void tell(struct discovery_source *d, const struct fusee_process_event *e)
{
	if (call_and_tell(d, &(struct call){.which = CALL_PROCESS, .event = e}) == -ENOMEM)
		miss(d, e);
}

static int tell_running(void *arg, pid_t pid)
{
	const struct fusee_process_event e = {
		.size = sizeof(e), .kind = FUSEE_PROCESS_RUNNING, .pid = (uint32_t)pid};

	tell(arg, &e);
	return 0;
}

static void tell_all(struct discovery_source *d)
{
	const struct fusee_process_event sync = {.size = sizeof(sync), .kind = FUSEE_PROCESS_SYNC};
	int r = procfs_each_process(tell_running, d);

	d->missed_all |= r == -ENOMEM;
	if (r)
		failed(d, CALL_PROCESS,
		       plugin_host_fail(d->in, r, "the processes in /proc cannot be listed"));
	tell(d, &sync);
}

int discovery_add(struct discovery *all, struct fusee_instance *in, struct discovery_source **ret,
		  char **text)
{
	struct discovery_source *d;
	void *owner = in->owner;
	int r = discoverer_new(all, in, &d);

	if (r) {
		*text = instance_sentence(in, r);
		return r;
	}
	d->in = in;
	in->owner = d;
	r = call(d, &(struct call){.which = CALL_START});
	if (r) {
		*text = instance_sentence(in, r);
		forget_metrics(d);
		in->owner = owner;
		d->in = NULL;
		discoverer_free(d);
		return r;
	}
	*all->last = d;
	all->last = &d->next;
	if (wants_processes(d))
		tell_all(d);
	*text = NULL;
	*ret = d;
	return 0;
}

void discovery_remove(struct discovery *all, struct discovery_source *d)
{
	(void)all;
	discoverer_free(d);
}

static void catch_up(struct discovery_source *d)
{
	uint32_t pids[MAX_MISSED], n = d->nmissed;
	bool all = d->missed_all, sync = d->missed_sync;
	struct fusee_process_event e = {.size = sizeof(e)};

	memcpy(pids, d->missed, n * sizeof(*pids));
	d->nmissed = 0;
	d->missed_all = d->missed_sync = false;
	for (uint32_t i = 0; i < n; i++) {
		bool gone = kill((pid_t)pids[i], 0) && errno == ESRCH;

		e.kind = gone ? FUSEE_PROCESS_EXIT : FUSEE_PROCESS_EXEC;
		e.pid = pids[i];
		tell(d, &e);
	}
	if (all)
		tell_all(d);
	else if (sync)
		tell(d,
		     &(struct fusee_process_event){.size = sizeof(e), .kind = FUSEE_PROCESS_SYNC});
}

void discovery_catch_up(struct discovery *all)
{
	for (struct discovery_source *d = all->first; d; d = d->next)
		if (d->nmissed || d->missed_all || d->missed_sync)
			catch_up(d);
}

void discovery_process(struct discovery *all, const struct fusee_process_event *e)
{
	for (struct discovery_source *d = all->first; d; d = d->next)
		if (wants_processes(d))
			tell(d, e);
}

bool discovery_synced(const struct discovery *all)
{
	for (const struct discovery_source *d = all->first; d; d = d->next)
		if (!discoverer_synced(d))
			return false;
	return true;
}

const struct fusee_instance *discoverer_instance(const struct discovery_source *d)
{
	return d->in;
}

bool discoverer_synced(const struct discovery_source *d)
{
	return targets_synced(d->all->targets, d->source);
}

uint32_t discoverer_targets(const struct discovery_source *d)
{
	return targets_count_of(d->all->targets, d->source);
}

const char *discoverer_error(const struct discovery_source *d)
{
	return d->error ? d->error : "";
}

int discovery_new(struct discovery **ret, struct loop *loop, struct targets *targets)
{
	struct discovery *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	*all = (struct discovery){.loop = loop, .targets = targets, .last = &all->first};
	*ret = all;
	return 0;
}

void discovery_free(struct discovery *all)
{
	if (!all)
		return;
	while (all->first)
		discoverer_free(all->first);
	free(all);
}
