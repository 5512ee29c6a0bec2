// SPDX-License-Identifier: Apache-2.0
/* The agent's side of the opener: its processes, time limits, suspect targets. */
#include "opener/opener.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/poller.h"
#include "sandbox/spawn.h"
#include "opener/internal/late.h"
#include "opener/internal/protocol.h"
#include "opener/internal/runqueue.h"
#include "opener/internal/share.h"

#define MS 1000000ull
#define PROCESSES 8u
#define SUSPECTS 64u      /* the oldest is replaced */
#define MOST_OF_USER 2u   /* suspect processes, from which on all of the user's are suspect */
#define MOST_OF_ROOT 4u   /* the same for root, as its processes are of many containers */
#define QUICK_NS (2 * MS) /* a query that takes no longer does not count as waiting */
#define START_MS 2000u    /* for the first process to be ready */
#define RECENT_MS 100u    /* how long opener.recent is used */
#define FD "3"            /* of the opener process: its end of the socket */

/* A target that has kept an opener process waiting. Times are CLOCK_MONOTONIC, ns. */
struct suspect {
	uint32_t uid;
	pid_t pid;
	uint64_t until;
};

/* An opener process. */
struct process {
	pid_t pid; /* 0: none; the other fields are undefined then */
	int sock, pidfd;
	bool ready;      /* its first message has arrived */
	bool busy;       /* it has a query without an answer, and no caller waits for it */
	bool killed;     /* its socket is closed */
	uint64_t since;  /* when it was started, or its query was sent */
	uint64_t id;     /* of its query; 0: none */
	uint64_t room;   /* the most bytes that a copy in its answer may have */
	int runqueue;    /* see runqueue_wait_ns() */
	uint64_t queued; /* runqueue_wait_ns() then */
	bool slow;       /* its query had no answer after QUICK_NS */
	struct opener_late_query query; /* of a busy process */
};

struct opener {
	struct poller poller;
	uint64_t ids;
	bool began;                /* a process was ready once */
	bool direct;               /* no process could be started: the agent makes the calls */
	struct opener_share share; /* of the time that queries may wait */
	uint32_t nsuspects;        /* that were ever added */
	uint64_t copied;           /* bytes of copies that are open */
	struct suspect suspects[SUSPECTS], recent; /* recent: the user that was looked up last */
	uint64_t suspect_until;                    /* the latest `until` of all suspects */
	struct opener_late late;
	struct process processes[PROCESSES];
	struct opener_counts counts;
	struct opener_reply_message reply;
};

bool opener_is_temporary(int err)
{
	return err == -EAGAIN || err == -ETIMEDOUT || err == -ENOBUFS || err == -EMFILE ||
	       err == -ENFILE || err == -EINTR;
}

static int receive(struct opener *, struct process *, struct opener_answer *);

/* ---- processes ---- */

static int start(struct opener *o, struct process *p)
{
	char *argv[] = {"fusee", "opener", FD, NULL};
	int err;

	*p = (struct process){.since = clock_now()};
	err = spawn_watched(&p->pid, &p->sock, &p->pidfd, argv);
	if (err)
		return err;
	p->runqueue = runqueue_open(p->pid);
	o->counts.processes++;
	log_debug("opener %d started", p->pid);
	return 0;
}

/* Kills the process. reap() frees its place once it has ended. */
static void end(struct opener *o, struct process *p)
{
	if (p->killed)
		return;
	kill(p->pid, SIGKILL);
	if (p->busy)
		poller_remove(&o->poller, p->sock);
	poller_add(&o->poller, p->pidfd);
	close(p->sock);
	if (p->runqueue >= 0)
		close(p->runqueue);
	p->killed = true;
}

static void reap(struct opener *o, struct process *p)
{
	struct pollfd ended = {.fd = p->pidfd, .events = POLLIN};

	if (!p->pid || !p->killed || poll(&ended, 1, 0) != 1)
		return;
	waitpid(p->pid, NULL, WNOHANG);
	close(p->pidfd);
	p->pid = 0;
	o->counts.processes--;
}

static bool is_idle(const struct process *p)
{
	return p->pid && !p->busy && !p->killed;
}

/* Whether the process is ready for a query. */
static bool may_take(struct opener *o, struct process *p)
{
	struct opener_answer none;

	if (!is_idle(p) || p->ready)
		return is_idle(p);
	if (receive(o, p, &none) < 0) /* it has ended */
		end(o, p);
	return p->ready;
}

/* A process that is ready for a query, or else a process that starts, or else a new process. NULL:
 * all are busy, or none can be started. */
static struct process *idle(struct opener *o)
{
	struct process *place = NULL, *starting = NULL;

	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct process *p = &o->processes[i];

		reap(o, p);
		if (may_take(o, p))
			return p;
		if (is_idle(p))
			starting = p;
		if (!p->pid)
			place = p;
	}
	if (starting)
		return starting;
	return place && !start(o, place) ? place : NULL;
}

/* Keeps one idle process, or two while there are suspects, because a start takes longer than a
 * query may wait. Ends other idle processes: these were busy and have answered late. */
static void keep_spare(struct opener *o, uint64_t now)
{
	uint32_t needed = now < o->suspect_until ? 2 : 1, n = 0;
	struct process *place = NULL;

	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct process *p = &o->processes[i];

		if (!p->pid)
			place = p;
		if (!is_idle(p))
			continue;
		if (n == needed)
			end(o, p);
		else
			n++;
	}
	if (n < needed && place)
		start(o, place);
}

/* ---- suspects ---- */

/* The user of a target; UINT32_MAX, which is no user's id, if the target has ended. */
static uint32_t user_of(struct opener *o, pid_t pid, uint64_t now)
{
	uid_t uid;

	if (o->recent.pid != pid || now >= o->recent.until)
		o->recent = (struct suspect){.uid = procfs_user(pid, &uid) ? UINT32_MAX : uid,
					     .pid = pid,
					     .until = now + RECENT_MS * MS};
	return o->recent.uid;
}

static void suspect(struct opener *o, pid_t pid, uint64_t now)
{
	o->suspects[o->nsuspects++ % SUSPECTS] = (struct suspect){user_of(o, pid, now), pid,
								  now + OPENER_SUSPECT_MS * MS};
	o->suspect_until = now + OPENER_SUSPECT_MS * MS;
}

static void clear_suspect(struct opener *o, pid_t pid)
{
	for (uint32_t i = 0; i < SUSPECTS; i++)
		if (o->suspects[i].pid == pid)
			o->suspects[i].until = 0;
}

/* Whether queries for this target are refused: it is suspect, or too many of its user's are. */
static bool is_suspect(struct opener *o, pid_t pid, uint64_t now)
{
	uint32_t n = 0, uid;

	if (now >= o->suspect_until)
		return false;
	uid = user_of(o, pid, now);
	for (uint32_t i = 0; i < SUSPECTS; i++) {
		const struct suspect *s = &o->suspects[i];

		if (now >= s->until)
			continue;
		if (s->pid == pid)
			return true;
		n += s->uid == uid;
	}
	return n >= (uid ? MOST_OF_USER : MOST_OF_ROOT);
}

/* Whether queries of the target's user, or all, have waited for too long in this second. */
static bool is_exhausted(struct opener *o, pid_t pid, uint64_t now)
{
	return opener_share_is_touched(&o->share, now) &&
	       opener_share_is_used_up(&o->share, user_of(o, pid, now));
}

/* ---- answers ---- */

/* Reads a message of the process. 1: the answer to its query; 0: none yet; -EPIPE: it has ended, or
 * its message is invalid. */
static int receive(struct opener *o, struct process *p, struct opener_answer *a)
{
	const struct opener_reply *r = &o->reply.r;
	int fd, got;

	for (;;) {
		got = opener_receive_reply(p->sock, &o->reply, &fd);
		if (got != 1)
			return got ? -EPIPE : 0;
		if (p->ready || r->id || r->err || fd >= 0)
			break;
		p->ready = o->began = true;
		if (!p->id)
			return 0;
	}
	if (!p->ready || !p->id || r->id != p->id || r->st.copied > p->room) {
		if (fd >= 0)
			close(fd);
		return -EPIPE;
	}
	*a = (struct opener_answer){.err = r->err, .fd = fd, .len = r->len, .st = r->st};
	if (fd < 0)
		a->st.copied = 0;
	o->copied += a->st.copied;
	p->id = 0;
	return 1;
}

/* Waits until the process is ready or, with a query, until it has answered. As receive(). */
static int wait_for(struct opener *o, struct process *p, uint64_t until, struct opener_answer *a)
{
	struct pollfd readable = {.fd = p->sock, .events = POLLIN};

	for (;;) {
		uint64_t now = clock_now();
		int wait = now < until ? (int)((until - now) / MS) + 1 : 0;
		int got = poll(&readable, 1, wait) ? receive(o, p, a) : 0;

		if (got || (p->ready && !p->id) || clock_now() >= until)
			return got;
	}
}

/* ---- queries ---- */

/* The most bytes that a copy in the next answer may have. */
static uint64_t room(const struct opener *o)
{
	uint64_t used = o->copied;

	for (uint32_t i = 0; i < PROCESSES; i++) /* each may still answer with a copy */
		if (o->processes[i].pid && o->processes[i].busy && !o->processes[i].killed)
			used += o->processes[i].room;
	used = used < OPENER_ALL_COPIED ? OPENER_ALL_COPIED - used : 0;
	return used < OPENER_MOST_COPIED ? used : OPENER_MOST_COPIED;
}

/* Stops waiting for the process: opener_dispatch() takes its answer. */
static void abandon(struct opener *o, struct process *p, const struct opener_query *q)
{
	uint64_t now = clock_now();

	log_debug("opener %d: no answer in %u ms for process %d", p->pid, OPENER_PATIENCE_MS,
		  (int)q->pid);
	p->busy = true;
	p->query = opener_late_query(q, p->since);
	poller_add(&o->poller, p->sock);
	suspect(o, q->pid, now);
	o->counts.timed_out++;
	poller_set(&o->poller, 1); /* opener_dispatch() starts another process */
}

/* How long the query has taken: until its answer the time that the opener says, which begins when
 * it had a CPU. Of a slow one without the time in which the opener waited for a CPU since: a busy
 * machine is not the target's fault. */
static uint64_t time_of_target(const struct opener *o, const struct process *p, bool answered)
{
	uint64_t since = clock_now() - p->since, took = since, queued;

	if (answered && o->reply.r.took_ns < since)
		took = o->reply.r.took_ns;
	if (took <= QUICK_NS || !p->slow)
		return took;
	queued = runqueue_wait_ns(p->runqueue) - p->queued;
	return took > queued ? took - queued : 0;
}

/* Waits for the answer. Most come at once, so how long the opener has waited for a CPU is read only
 * after a moment. As receive(). */
static int wait_for_answer(struct opener *o, struct process *p, struct opener_answer *a)
{
	int r = wait_for(o, p, p->since + QUICK_NS, a);

	p->slow = !r;
	if (!p->slow)
		return r;
	p->queued = runqueue_wait_ns(p->runqueue);
	r = wait_for(o, p, p->since + OPENER_PATIENCE_MS * MS, a);
	while (!r && runqueue_has(p->pid) && clock_now() < p->since + OPENER_QUEUED_MS * MS)
		r = wait_for(o, p, clock_now() + OPENER_PATIENCE_MS * MS, a);
	return r;
}

/* 1: answered; 0: no answer in time; -errno. */
static int ask(struct opener *o, struct process *p, const struct opener_query *q,
	       struct opener_answer *a)
{
	uint64_t took;
	int r = 0;

	if (!p->ready && !o->began)
		r = wait_for(o, p, p->since + START_MS * MS, a);
	if (r < 0)
		return r;
	if (!p->ready)
		return -EAGAIN;
	p->room = q->kind == OPENER_MAPPING ? room(o) : 0;
	r = opener_send_request(p->sock, ++o->ids, q, p->room);
	if (r)
		return r;
	p->id = o->ids;
	p->since = clock_now();
	r = wait_for_answer(o, p, a);
	took = time_of_target(o, p, r == 1);
	if (took > QUICK_NS)
		opener_share_add(&o->share, user_of(o, q->pid, p->since + took), took);
	if (!r)
		abandon(o, p, q);
	return r;
}

static int call(struct opener *o, const struct opener_query *q, struct opener_answer *a)
{
	int err = -EAGAIN;

	for (int i = 0; i < 2; i++) { /* a process may have ended since its last query */
		struct process *p = idle(o);
		int r = p ? ask(o, p, q, a) : -EAGAIN;

		if (r == 1)
			return a->err;
		if (!r)
			return -ETIMEDOUT;
		if (r != -EPIPE && r != -ECONNRESET)
			return r;
		end(o, p);
	}
	if (!o->began) {
		log_warning("the opener process does not start: files and memory of targets can "
			    "keep this process waiting");
		o->direct = true;
	}
	return err;
}

int opener_call(struct opener *o, const struct opener_query *query, struct opener_answer *a)
{
	struct opener_query by_thread = *query;
	const struct opener_query *q = &by_thread;
	uint64_t now;

	/* A target's first thread may have ended. The opener may not list folders, so a living
	 * thread is chosen here; but only `stat` of the first thread has the process's start. */
	if (q->kind != OPENER_TEXT || strcmp(q->path, "stat") != 0)
		by_thread.pid = procfs_living_thread(query->pid);
	if (!o || o->direct) {
		opener_serve(q, a);
		return a->err;
	}
	now = clock_now();
	o->counts.queries++;
	*a = (struct opener_answer){.fd = -1};
	if (opener_late_take(&o->late, q, now, a))
		return a->err;
	if (is_suspect(o, q->pid, now)) {
		o->counts.refused++;
		return a->err = -ETIMEDOUT;
	}
	if (is_exhausted(o, q->pid, now)) {
		o->counts.postponed++;
		return a->err = -EAGAIN;
	}
	a->err = call(o, q, a);
	if (!a->err && a->len && q->buf)
		memcpy(q->buf, o->reply.data, a->len < q->len ? a->len : q->len);
	return a->err;
}

void opener_release_copy(struct opener *o, uint64_t bytes)
{
	if (o)
		o->copied -= bytes;
}

/* ---- processes that are not waited for ---- */

static void attend(struct opener *o, struct process *p, uint64_t now)
{
	struct opener_answer a;
	int got;

	if (!p->pid || !p->busy || p->killed)
		return;
	got = receive(o, p, &a);
	if (got == 1) {
		clear_suspect(o, p->query.pid);
		o->copied -= opener_late_keep(&o->late, &p->query, &a);
		poller_remove(&o->poller, p->sock);
		p->busy = false;
	} else if (got < 0 || now >= p->since + OPENER_DEADLINE_MS * MS) {
		end(o, p);
	}
}

void opener_dispatch(struct opener *o)
{
	uint64_t now = clock_now(), at = 0;

	poller_clear(&o->poller);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct process *p = &o->processes[i];

		attend(o, p, now);
		reap(o, p);
		if (p->pid && p->busy && !p->killed &&
		    (!at || p->since + OPENER_DEADLINE_MS * MS < at))
			at = p->since + OPENER_DEADLINE_MS * MS;
	}
	keep_spare(o, now);
	o->copied -= opener_late_expire(&o->late, now, &at);
	poller_set(&o->poller, at);
}

int opener_fd(const struct opener *o)
{
	return o->poller.epoll;
}

void opener_counts(const struct opener *o, struct opener_counts *c)
{
	*c = (struct opener_counts){0};
	if (!o)
		return;
	*c = o->counts;
	c->copied = o->copied;
	for (uint32_t i = 0; i < PROCESSES; i++) {
		c->stuck += o->processes[i].pid && o->processes[i].busy;
		c->cpu_ns += spawn_cpu_ns(o->processes[i].pid);
	}
}

/* ---- the object ---- */

int opener_new(struct opener **ret)
{
	struct opener *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return -ENOMEM;
	opener_late_init(&o->late);
	err = poller_open(&o->poller);
	if (!err && !idle(o))
		err = -EAGAIN;
	if (err) {
		opener_free(o);
		return err;
	}
	*ret = o;
	return 0;
}

void opener_free(struct opener *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < PROCESSES; i++)
		if (o->processes[i].pid)
			end(o, &o->processes[i]);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct process *p = &o->processes[i];
		struct pollfd ended = {.fd = p->pidfd, .events = POLLIN};

		if (!p->pid)
			continue;
		poll(&ended, 1, p->busy ? 0 : 100); /* init reaps processes that do not end */
		reap(o, p);
		if (p->pid)
			close(p->pidfd);
	}
	opener_late_expire(&o->late, UINT64_MAX, NULL);
	poller_close(&o->poller);
	free(o);
}
