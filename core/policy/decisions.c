/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decisions.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "process/procfs.h"

/* Samples of a process arrive up to a second after its end, so its decision and events are kept for
 * this time. Not for longer, because there may be many short processes. */
#define GRACE_NS 2000000000u
#define RECHECK 15u /* seconds until each process has been checked again */
#define YOUNG 300u  /* seconds; older processes are checked every fourth time */

enum { MAX_FORGOTTEN = 256 };

struct decisions {
	struct decisions_options o;
	struct hashmap processes; /* pid -> struct tracked * */
	struct decision_cache cache;
	uint64_t generation; /* of the targets when all processes were last decided */
	bool missed;         /* a process may be unknown, or have no decision */
	uint32_t round;      /* calls of decisions_tidy() */
	uint32_t losses;     /* calls of decisions_lost() */
	struct cgroup_namespace at;
};

/* ---- one process ---- */

/* at: CLOCK_MONOTONIC ns; 0: the process runs. An ended process keeps its decision for its last
 * samples. */
static void set_ended(struct tracked *t, uint64_t at)
{
	if (t->decision && !at != !t->ended) {
		fusee_assert(t->ended || t->decision->d.processes);
		t->decision->d.processes += at ? -1u : 1u;
	}
	t->ended = at;
}

static const struct decision not_profiled; /* of kernel threads */

static void set_decision(struct decisions *s, struct tracked *t, struct cached_decision *c,
			 bool inherited)
{
	const struct decision *none = t->kernel ? &not_profiled : NULL;

	if (t->decision == c && t->reported)
		return;
	if (t->decision) {
		fusee_assert(t->decision->holders);
		t->decision->holders--;
		t->decision->d.processes -= !t->ended;
	}
	t->decision = c;
	if (c) {
		c->holders++;
		c->d.processes += !t->ended;
	}
	t->reported = !s->o.changed(s->o.arg, t->pid, c ? &c->d : none, inherited);
	s->missed |= !t->reported;
}

/* Finds the process's label set, and the decision for it. */
static void decide(struct decisions *s, struct tracked *t)
{
	struct target_process p = tracked_target(t);
	struct cached_decision *c = NULL;

	if (!t->kernel) {
		c = decision_cache_get(&s->cache, &p, &t->known);
		s->missed |= !c;
	}
	set_decision(s, t, c, false);
}

static void forget(struct decisions *s, struct tracked *t)
{
	set_decision(s, t, NULL, false);
	if (s->o.forgotten)
		s->o.forgotten(s->o.arg, t->pid);
	hashmap_del(&s->processes, (uint64_t)t->pid);
	tracked_free(t);
}

/* The entry of a process that begins in this pid. NULL: no memory; decisions_tidy() finds the
 * process later. */
static struct tracked *begin(struct decisions *s, pid_t pid)
{
	struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);

	if (t) {
		tracked_reset(t);
		t->since = s->round;
		set_ended(t, 0);
		return t;
	}
	t = calloc(1, sizeof(*t));
	if (!t || hashmap_put(&s->processes, (uint64_t)pid, t)) {
		s->missed = true;
		free(t);
		return NULL;
	}
	t->pid = pid;
	t->since = s->round;
	return t;
}

/* Of moves, and of losses, after which a pid may be another process's. 0: not counted. */
static uint64_t count_moves(const struct decisions *s)
{
	uint64_t n = s->o.moves ? s->o.moves(s->o.arg) : 0;

	return n ? n + s->losses : 0;
}

void decisions_lost(struct decisions *s)
{
	s->losses++;
}

/* 0 or -errno; *changed: the path differs from the last. */
static int read_cgroup(const struct decisions *s, struct tracked *t, bool *changed)
{
	uint64_t moves = count_moves(s);
	int r = tracked_read_cgroup(t, &s->at, changed);

	t->read.moves = r ? 0 : moves;
	return r;
}

/* The control group of a process after its exec, which is that of before in most cases. cgroup: its
 * path then, or NULL; was: when that was read. 0 or -errno. */
static int find_cgroup(const struct decisions *s, struct tracked *t, char **cgroup,
		       const struct cgroup_reading *was)
{
	uint64_t group = was->moves ? procfs_cgroup_id(t->pid) : 0;
	bool changed;
	int r = 0;

	if (*cgroup && group && group == was->group && was->moves == count_moves(s)) {
		t->cgroup = *cgroup;
		t->read.moves = was->moves;
		*cgroup = NULL;
	} else {
		r = read_cgroup(s, t, &changed);
	}
	t->read.group = group || !t->read.moves ? group : procfs_cgroup_id(t->pid);
	return r;
}

/* ---- process events ---- */

/* Decides a process that ended before its exec was handled, for its last samples: by the name that
 * the kernel reported and by the control group in which the process began. */
static void decide_ended(struct decisions *s, struct tracked *t, const char *comm, char **cgroup,
			 uint64_t time_ns)
{
	if (comm) {
		snprintf(t->name, sizeof(t->name), "%s", comm);
		t->kernel = false;
		t->identity = 0;
		t->cgroup = *cgroup;
		*cgroup = NULL;
		decide(s, t);
	}
	set_ended(t, comm ? time_ns : 1);
}

void decisions_execed(struct decisions *s, pid_t pid, const char *comm, uint64_t time_ns)
{
	struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);
	char *cgroup = t ? t->cgroup : NULL; /* of before the exec, or its parent's */
	struct cgroup_reading was = {0};
	uint64_t identity;

	if (t) {
		t->cgroup = NULL;
		was = t->read.moves ? t->read : t->inherited;
	}
	t = begin(s, pid);
	if (!t)
		goto out;
	t->execed = clock_now();
	if (procfs_identity(pid, &identity) || tracked_read_name(t)) {
		decide_ended(s, t, comm, &cgroup, time_ns);
		goto out;
	}
	if (t->identity && t->identity != identity) { /* another process in this pid */
		set_decision(s, t, NULL, false);
		was.moves = 0;
	}
	t->identity = identity;
	if (find_cgroup(s, t, &cgroup, &was)) {
		t->cgroup = cgroup;
		cgroup = NULL;
	}
	decide(s, t);
out:
	free(cgroup);
}

void decisions_forked(struct decisions *s, pid_t parent, pid_t child)
{
	const struct tracked *from = hashmap_get(&s->processes, (uint64_t)parent);
	struct tracked *t;

	if (!from) { /* the fork of the parent was missed */
		decisions_execed(s, child, NULL, 0);
		return;
	}
	t = begin(s, child);
	if (!t)
		return;
	t->identity = 0;     /* read at the exec or at the next check */
	t->reported = false; /* an earlier process in this pid may have had the same decision */
	t->execed = from->execed;
	tracked_inherit(t, from);
	if (t->kernel || from->decision)
		set_decision(s, t, from->decision, from->reported);
	else
		decide(s, t);
}

void decisions_exited(struct decisions *s, pid_t pid, uint64_t now_ns)
{
	struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);

	if (t)
		set_ended(t, now_ns);
}

/* ---- programs ---- */

struct search {
	struct decisions *s;
	uint64_t until;
};

static void find_program(void *arg, uint64_t key, void *value)
{
	const struct search *f = arg;
	struct tracked *t = value;
	struct program found = {0};

	(void)key;
	if (t->program || t->ended || t->execed >= f->until || !t->decision ||
	    !t->decision->d.profile || !f->s->o.program(f->s->o.arg, t->pid, &found))
		return;
	t->program = malloc(sizeof(*t->program)); /* without memory the next call tries again */
	if (!t->program)
		return;
	*t->program = found;
	decide(f->s, t);
}

void decisions_find_programs(struct decisions *s, uint64_t until_ns)
{
	struct search f = {s, until_ns};

	hashmap_each(&s->processes, find_program, &f);
}

/* ---- changes of targets and plans ---- */

static void decide_each(void *arg, uint64_t key, void *value)
{
	struct tracked *t = value;

	(void)key;
	if (!t->ended)
		decide(arg, t);
}

static void decide_pid(void *arg, pid_t pid)
{
	struct decisions *s = arg;
	struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);

	if (t && !t->ended)
		decide(s, t);
}

bool decisions_are_stale(const struct decisions *s)
{
	return targets_generation(s->o.targets) != s->generation;
}

void decisions_refresh(struct decisions *s)
{
	if (!decisions_are_stale(s))
		return;
	s->generation = targets_generation(s->o.targets);
	if (targets_changes(s->o.targets, decide_pid, s))
		hashmap_each(&s->processes, decide_each, s);
}

/* Also decides ended processes that have a decision: the new plan's sinks receive their last
 * samples. */
static void decide_anew(void *arg, uint64_t key, void *value)
{
	struct tracked *t = value;

	(void)key;
	if (!t->ended || t->decision)
		decide(arg, t);
}

void decisions_replan(struct decisions *s, bool unknown_keep)
{
	struct decision_cache old = s->cache;

	s->cache.unknown_keep = unknown_keep;
	s->cache.entries = (struct hashmap){0};
	s->cache.changed = 0;
	s->generation = targets_generation(s->o.targets);
	targets_changes(s->o.targets, NULL, NULL);
	hashmap_each(&s->processes, decide_anew, s);
	decision_cache_fini(&old);
}

static void report_changed(void *arg, uint64_t key, void *value)
{
	struct decisions *s = arg;
	struct tracked *t = value;

	(void)key;
	if (t->ended || !t->decision || !t->decision->changed)
		return;
	t->reported = false;
	set_decision(s, t, t->decision, false);
}

static void clear_changed(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	((struct cached_decision *)value)->changed = false;
}

void decisions_apply(struct decisions *s, uint64_t now_ns)
{
	if (!decision_changes_refresh(&s->cache, now_ns))
		return;
	hashmap_each(&s->processes, report_changed, s);
	hashmap_each(&s->cache.entries, clear_changed, NULL);
}

struct decision_cache *decisions_cache(struct decisions *s)
{
	return &s->cache;
}

/* ---- once a second ---- */

struct tidy {
	struct decisions *s;
	uint64_t now;
	struct tracked *ended[MAX_FORGOTTEN];
	uint32_t n;
};

static bool exists(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

static bool is_thorough(const struct decisions *s)
{
	return s->round / RECHECK % 4 == 0;
}

/* Whether no process has moved since the control group of t was read. Every fourth check ignores
 * the counter of moves. */
static bool is_settled(const struct decisions *s, const struct tracked *t)
{
	return !is_thorough(s) && t->read.moves && t->read.moves == count_moves(s);
}

/* Finds changes that no event reports, or that a lost event reported: a move to another control
 * group, an end, and, only in thorough checks as it costs more, another process in the same pid. */
static void check(struct tidy *y, struct tracked *t)
{
	bool changed = false, moved = false, ended = false;
	uint64_t identity = t->identity;

	if (!identity || is_thorough(y->s)) {
		ended = procfs_identity(t->pid, &identity);
		changed = !ended && t->identity != identity;
	}
	if (!ended && changed && (t->identity || !*t->name)) {
		decisions_execed(y->s, t->pid, NULL, 0);
		return;
	}
	/* a control group that cannot be read may belong to a hidden process that still runs */
	if (!ended && !t->kernel && (is_settled(y->s, t) || read_cgroup(y->s, t, &moved)))
		ended = !exists(t->pid);
	if (ended) {
		set_ended(t, y->now);
	} else if (!t->kernel) {
		t->identity = identity;
		if (moved || changed || !t->decision)
			decide(y->s, t);
	}
}

static void tidy_process(void *arg, uint64_t key, void *value)
{
	struct tidy *y = arg;
	struct tracked *t = value;

	if (t->ended && y->now - t->ended > GRACE_NS && y->n < MAX_FORGOTTEN) {
		if (exists(t->pid)) /* only the main thread ended, or the pid is used again */
			set_ended(t, 0);
		else
			y->ended[y->n++] = t;
		return;
	}
	if (!t->ended && key % RECHECK == y->s->round % RECHECK &&
	    (is_thorough(y->s) || (!t->kernel && y->s->round - t->since < YOUNG)))
		check(y, t);
}

static void decide_missed(void *arg, uint64_t key, void *value)
{
	struct tracked *t = value;

	(void)key;
	if (!t->ended && !t->kernel && (!t->decision || !t->reported))
		decide(arg, t);
}

static int find_missed(void *arg, pid_t pid)
{
	struct decisions *s = arg;

	if (!hashmap_get(&s->processes, (uint64_t)pid))
		decisions_execed(s, pid, NULL, 0);
	return 0;
}

static void retry_missed(struct decisions *s)
{
	s->missed = false;
	hashmap_each(&s->processes, decide_missed, s);
	s->missed |= procfs_each_process(find_missed, s) != 0;
}

void decisions_tidy(struct decisions *s, uint64_t now_ns)
{
	struct tidy y = {.s = s, .now = now_ns};

	s->round++;
	decisions_apply(s, now_ns);
	if (s->missed)
		retry_missed(s);
	hashmap_each(&s->processes, tidy_process, &y);
	for (uint32_t i = 0; i < y.n; i++)
		forget(s, y.ended[i]);
}

void decisions_rescan(struct decisions *s)
{
	s->missed = true;
}

/* ---- getters ---- */

int decisions_process(const struct decisions *s, pid_t pid, struct decision_process *p)
{
	const struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);

	if (!t || t->ended)
		return -ESRCH;
	p->target = tracked_target(t);
	p->kernel = t->kernel;
	p->decision = t->decision;
	return 0;
}

const struct decision *decisions_of(const struct decisions *s, pid_t pid)
{
	const struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);

	return t && t->decision ? &t->decision->d : NULL;
}

void decisions_add_cpu(struct decisions *s, pid_t pid, uint64_t ns)
{
	const struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);

	if (t && t->decision)
		t->decision->d.cpu_ns += ns;
}

const struct decision *decisions_of_set(const struct decisions *s, uint32_t set)
{
	return decision_cache_find(&s->cache, set);
}

struct count {
	uint32_t all, profiled;
};

static void count_process(void *arg, uint64_t key, void *value)
{
	const struct tracked *t = value;
	struct count *c = arg;

	(void)key;
	c->all += !t->ended && !t->kernel;
	c->profiled += !t->ended && t->decision && t->decision->d.profile;
}

uint32_t decisions_processes(const struct decisions *s, uint32_t *profiled)
{
	struct count c = {0};

	hashmap_each(&s->processes, count_process, &c);
	*profiled = c.profiled;
	return c.all;
}

void decisions_each_set(const struct decisions *s, void (*each)(void *arg, const struct decision *),
			void *arg)
{
	decision_cache_each(&s->cache, each, arg);
}

struct each_process {
	void (*each)(void *arg, pid_t pid, const struct decision *);
	void *arg;
};

static void each_tracked(void *arg, uint64_t key, void *value)
{
	const struct each_process *e = arg;
	const struct tracked *t = value;

	(void)key;
	if (!t->ended && t->decision)
		e->each(e->arg, t->pid, &t->decision->d);
}

void decisions_each_process(const struct decisions *s,
			    void (*each)(void *arg, pid_t pid, const struct decision *), void *arg)
{
	struct each_process e = {each, arg};

	hashmap_each(&s->processes, each_tracked, &e);
}

void decisions_sweep(struct decisions *s, bool (*used)(void *arg, uint32_t set), void *arg)
{
	decision_cache_sweep(&s->cache, used, arg);
}

/* ---- the object ---- */

int decisions_new(struct decisions **ret, const struct decisions_options *o)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret || cgroup_namespace_open(&(*ret)->at)) {
		free(*ret);
		*ret = NULL;
		return -ENOMEM;
	}
	(*ret)->o = *o;
	(*ret)->cache = (struct decision_cache){.targets = o->targets,
						.decide = o->decide,
						.decide_early = o->decide_early,
						.find_labels = o->find_labels,
						.arg = o->arg,
						.unknown_keep = o->unknown_keep};
	return 0;
}

static void free_tracked(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	tracked_free(value);
}

void decisions_free(struct decisions *s)
{
	if (!s)
		return;
	hashmap_each(&s->processes, free_tracked, NULL);
	hashmap_fini(&s->processes);
	decision_cache_fini(&s->cache);
	free(s);
}
