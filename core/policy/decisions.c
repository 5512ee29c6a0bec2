/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decisions.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/hashmap.h"
#include "process/cgroup.h"
#include "process/procfs.h"

/* Samples of a process come a little after its end; its events stand so long, which is many of them
 * where processes are short. */
#define GRACE_NS 2000000000u
#define RECHECK 15u /* seconds, until each process was looked at again */
#define YOUNG 300u  /* seconds; later on it is looked at every fourth time */

struct tracked {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t ended; /* 0: it lives */
	uint32_t since; /* the round that it began in, or execed */
	char name[64];
	char *cgroup;            /* NULL: unknown */
	uint64_t moves;          /* of all when it was read; 0: not known, or not read */
	bool kernel;             /* a kernel thread */
	bool known;              /* some source knows it */
	bool told;               /* changed() was called since this life began */
	struct verdict *verdict; /* NULL: none yet */
};

/* One label set's. */
struct verdict {
	struct decision d;
	bool known;       /* that of processes that some source knows; else unknown ones' */
	uint32_t holders; /* processes that have it, with those that ended a while ago */
	struct fusee_label labels[64];
	char *texts; /* of the policy's labels */
};

struct decisions {
	struct decisions_options o;
	struct hashmap processes; /* pid -> struct tracked * */
	struct hashmap verdicts;  /* set * 2 + known -> struct verdict * */
	uint64_t generation;      /* of the targets, when all was looked at */
	bool missed;              /* for want of memory: somebody is not here, or has no verdict */
	uint32_t round;           /* of decisions_tidy() */
};

/* ---- verdicts ---- */

static uint64_t verdict_key(uint32_t set, bool known)
{
	return (uint64_t)set * 2 + known + 2;
}

static int by_key(const void *a, const void *b)
{
	const struct fusee_str *x = &((const struct fusee_label *)a)->key;
	const struct fusee_str *y = &((const struct fusee_label *)b)->key;
	int r = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);

	return r ? r : (x->len > y->len) - (x->len < y->len);
}

static bool same_key(const struct fusee_label *a, const struct fusee_label *b)
{
	return a->key.len == b->key.len && !memcmp(a->key.p, b->key.p, a->key.len);
}

/* Copies the policy's label in, in place of the target's of that name. */
static void add_label(struct verdict *v, const struct fusee_label *l, char **texts)
{
	struct fusee_label copy = {.key = {*texts, l->key.len}};
	uint32_t i = 0;

	*texts = (char *)mempcpy(*texts, l->key.p, l->key.len);
	copy.str = (struct fusee_str){*texts, l->str.len};
	*texts = (char *)mempcpy(*texts, l->str.p, l->str.len);
	while (i < v->d.nlabels && !same_key(&v->labels[i], &copy))
		i++;
	if (i < sizeof(v->labels) / sizeof(v->labels[0])) {
		v->labels[i] = copy;
		v->d.nlabels += i == v->d.nlabels;
	}
}

static int set_labels(struct verdict *v, const struct fusee_label *set, uint32_t n,
		      const struct policy_answer *d)
{
	size_t bytes = 1;
	char *texts;

	for (uint32_t i = 0; i < d->nlabels; i++)
		bytes += d->labels[i].key.len + d->labels[i].str.len;
	texts = v->texts = malloc(bytes);
	if (!texts)
		return -ENOMEM;
	if (n > sizeof(v->labels) / sizeof(v->labels[0]))
		n = sizeof(v->labels) / sizeof(v->labels[0]);
	memcpy(v->labels, set, n * sizeof(*set));
	v->d.nlabels = n;
	for (uint32_t i = 0; i < d->nlabels; i++)
		add_label(v, &d->labels[i], &texts);
	qsort(v->labels, v->d.nlabels, sizeof(v->labels[0]), by_key);
	v->d.labels = v->labels;
	return 0;
}

static void free_verdict(struct verdict *v)
{
	if (v)
		free(v->texts);
	free(v);
}

/* 0, or -ENOMEM: nothing was decided. */
static int ask(struct decisions *s, struct verdict *v, const struct fusee_label *labels, uint32_t n)
{
	struct policy_answer d = {0};
	char *text = NULL;
	int r = 0;

	if (v->known || s->o.unknown_keep) {
		r = s->o.decide(s->o.arg, labels, n, &d, &text);
		if (r) {
			log_warning("%s", text ? text : strerror(ENOMEM));
			metric_add("policy_errors_total", "Answers of the policy that were wrong.",
				   NULL, 1);
		}
		free(text);
		if (r == -ENOMEM)
			return r;
	}
	r = set_labels(v, labels, n, &d);
	v->d.profile = d.profile && d.sinks && d.hz > 0;
	v->d.hz = v->d.profile ? d.hz : 0;
	v->d.sinks = v->d.profile ? d.sinks : 0;
	return r;
}

/* NULL: no memory. */
static struct verdict *verdict_of(struct decisions *s, uint32_t set, bool known)
{
	struct verdict *v = hashmap_get(&s->verdicts, verdict_key(set, known));
	const struct fusee_label *labels;
	uint32_t n;

	if (v)
		return v;
	labels = targets_set(s->o.targets, set, &n);
	v = labels ? calloc(1, sizeof(*v)) : NULL;
	if (!v)
		return NULL;
	v->d.set = set;
	v->known = known;
	if (ask(s, v, labels, n) || hashmap_put(&s->verdicts, verdict_key(set, known), v)) {
		free_verdict(v);
		return NULL;
	}
	return v;
}

/* ---- processes ---- */

/* It ended, or, 0, lives: one that ended keeps its decision, for its last samples. */
static void set_ended(struct tracked *t, uint64_t at)
{
	if (t->verdict && !at != !t->ended)
		t->verdict->d.processes += at ? -1u : 1u;
	t->ended = at;
}

static const struct decision no_decision; /* kernel threads are not profiled */

static void hand(struct decisions *s, struct tracked *t, struct verdict *v, bool inherited)
{
	const struct decision *others = t->kernel ? &no_decision : NULL;

	if (t->verdict == v && t->told)
		return;
	if (t->verdict) {
		t->verdict->holders--;
		t->verdict->d.processes -= !t->ended;
	}
	t->verdict = v;
	if (v) {
		v->holders++;
		v->d.processes += !t->ended;
	}
	t->told = !s->o.changed(s->o.arg, t->pid, v ? &v->d : others, inherited);
	s->missed |= !t->told;
}

static void give(struct decisions *s, struct tracked *t, struct verdict *v)
{
	hand(s, t, v, false);
}

/* Looks its labels up, and what was decided about them. */
static void decide(struct decisions *s, struct tracked *t)
{
	struct target_process p = {.pid = t->pid,
				   .start_ticks = t->start_ticks,
				   .cgroup = t->cgroup ? t->cgroup : "",
				   .name = t->name};
	uint32_t set;

	if (t->kernel) {
		give(s, t, NULL);
		return;
	}
	set = targets_labels(s->o.targets, &p, &t->known);
	give(s, t, set == TARGET_NONE ? NULL : verdict_of(s, set, t->known));
	s->missed |= !t->verdict;
}

static void forget(struct decisions *s, struct tracked *t)
{
	give(s, t, NULL);
	hashmap_del(&s->processes, (uint64_t)t->pid);
	free(t->cgroup);
	free(t);
}

/* A pid's entry, emptied: a new life. NULL: no memory, and it is looked for again. */
static struct tracked *fresh(struct decisions *s, pid_t pid)
{
	struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);

	if (t) {
		free(t->cgroup);
		t->cgroup = NULL;
		t->moves = 0;
		t->since = s->round;
		set_ended(t, 0);
		t->known = t->kernel = false;
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

/* Its executable's base name; a kernel thread has none. */
static int read_name(struct tracked *t)
{
	char path[64], exe[4096], comm[16];
	char *base;
	ssize_t n;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	t->kernel = false;
	if (n < 0) { /* the kernel's, somebody else's, or it has ended and waits for its parent */
		r = procfs_is_kernel(t->pid, &t->kernel);
		if (!r)
			r = procfs_comm(t->pid, t->pid, comm);
		if (!r)
			snprintf(t->name, sizeof(t->name), "%s", comm);
		return r;
	}
	exe[n] = '\0';
	if (n > 10 && !strcmp(exe + n - 10, " (deleted)"))
		exe[n - 10] = '\0';
	base = strrchr(exe, '/');
	snprintf(t->name, sizeof(t->name), "%.*s", (int)sizeof(t->name) - 1, base ? base + 1 : exe);
	return 0;
}

static uint64_t count_moves(const struct decisions *s)
{
	return s->o.moves ? s->o.moves(s->o.arg) : 0;
}

/* *changed: it is another one than before. */
static int read_cgroup(const struct decisions *s, struct tracked *t, bool *changed)
{
	char path[CGROUP_MAX];
	uint64_t moves = count_moves(s);
	int r = cgroup_of("", t->pid, path);

	t->moves = r ? 0 : moves;
	*changed = !r && (!t->cgroup || strcmp(t->cgroup, path));
	if (*changed) {
		free(t->cgroup);
		t->cgroup = strdup(path);
	}
	return r;
}

/* It ended before we could look: what its last samples are decided by is the name that the kernel
 * told, and where its parent was. */
static void decide_late(struct decisions *s, struct tracked *t, const char *comm, char **cgroup,
			uint64_t time_ns)
{
	if (comm) {
		snprintf(t->name, sizeof(t->name), "%s", comm);
		t->kernel = false;
		t->start_ticks = 0;
		t->cgroup = *cgroup;
		*cgroup = NULL;
		decide(s, t);
	}
	set_ended(t, comm ? time_ns : 1);
}

void decisions_execed(struct decisions *s, pid_t pid, const char *comm, uint64_t time_ns)
{
	struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);
	char *cgroup = t ? t->cgroup : NULL; /* as it was, or as its parent's is */
	uint64_t ticks;
	bool changed;

	if (t)
		t->cgroup = NULL;
	t = fresh(s, pid);
	if (!t)
		goto out;
	if (procfs_start_ticks(pid, &ticks) || read_name(t)) {
		decide_late(s, t, comm, &cgroup, time_ns);
		goto out;
	}
	if (t->start_ticks && t->start_ticks != ticks)
		give(s, t, NULL); /* another process: what stood for the old one is over */
	t->start_ticks = ticks;
	read_cgroup(s, t, &changed);
	decide(s, t);
out:
	free(cgroup);
}

void decisions_forked(struct decisions *s, pid_t parent, pid_t child)
{
	const struct tracked *from = hashmap_get(&s->processes, (uint64_t)parent);
	struct tracked *t;

	if (!from) { /* its parent began before we knew: look */
		decisions_execed(s, child, NULL, 0);
		return;
	}
	t = fresh(s, child);
	if (!t)
		return;
	t->start_ticks = 0; /* read at exec, or when it is looked at again */
	t->told = false;    /* an older process of this number may have had the same */
	t->kernel = from->kernel;
	memcpy(t->name, from->name, sizeof(t->name));
	t->cgroup = from->cgroup ? strdup(from->cgroup) : NULL;
	t->known = from->known;
	if (t->kernel || from->verdict)
		hand(s, t, from->verdict, from->told);
	else
		decide(s, t);
}

void decisions_exited(struct decisions *s, pid_t pid, uint64_t now_ns)
{
	struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);

	if (t)
		set_ended(t, now_ns);
}

/* ---- all of them ---- */

static void decide_one(void *arg, uint64_t key, void *value)
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
		hashmap_each(&s->processes, decide_one, s);
}

/* Also of one that has ended: its last samples go the new plan's ways. */
static void decide_anew(void *arg, uint64_t key, void *value)
{
	struct tracked *t = value;

	(void)key;
	if (!t->ended || t->verdict)
		decide(arg, t);
}

static void free_one_verdict(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	free_verdict(value);
}

void decisions_replan(struct decisions *s, bool unknown_keep)
{
	struct hashmap old = s->verdicts;

	s->o.unknown_keep = unknown_keep;
	s->verdicts = (struct hashmap){0};
	s->generation = targets_generation(s->o.targets);
	targets_changes(s->o.targets, NULL, NULL);
	hashmap_each(&s->processes, decide_anew, s);
	hashmap_each(&old, free_one_verdict, NULL);
	hashmap_fini(&old);
}

struct tidy {
	struct decisions *s;
	uint64_t now;
	struct tracked *gone[256];
	uint32_t n;
};

static bool is_there(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

static bool is_thorough(const struct decisions *s)
{
	return s->round / RECHECK % 4 == 0;
}

/* Nobody moved since its control group was read; which is not relied on for ever. */
static bool is_settled(const struct decisions *s, const struct tracked *t)
{
	return !is_thorough(s) && t->moves && t->moves == count_moves(s);
}

/* What no event tells, or what one told that was lost: a move to another control group, an end,
 * and, more rarely since it costs more, a new process of the same number. */
static void look_again(struct tidy *y, struct tracked *t)
{
	bool changed = false, moved = false, gone = false;
	uint64_t ticks = t->start_ticks;

	if (!ticks || is_thorough(y->s)) {
		gone = procfs_start_ticks(t->pid, &ticks);
		changed = !gone && t->start_ticks != ticks;
	}
	if (!gone && changed && (t->start_ticks || !*t->name)) {
		decisions_execed(y->s, t->pid, NULL, 0);
		return;
	}
	/* who has a control group is there; who has none may be hidden from us */
	if (!gone && !t->kernel && (is_settled(y->s, t) || read_cgroup(y->s, t, &moved)))
		gone = !is_there(t->pid);
	if (gone) {
		set_ended(t, y->now);
	} else if (!t->kernel) {
		t->start_ticks = ticks;
		if (moved || changed || !t->verdict)
			decide(y->s, t);
	}
}

static void tidy_one(void *arg, uint64_t key, void *value)
{
	struct tidy *y = arg;
	struct tracked *t = value;

	if (t->ended && y->now - t->ended > GRACE_NS && y->n < 256) {
		if (is_there(t->pid))
			set_ended(t, 0); /* its first thread ended, others go on; or a new one */
		else
			y->gone[y->n++] = t;
		return;
	}
	if (!t->ended && key % RECHECK == y->s->round % RECHECK &&
	    (is_thorough(y->s) || (!t->kernel && y->s->round - t->since < YOUNG)))
		look_again(y, t);
}

static void decide_missed(void *arg, uint64_t key, void *value)
{
	struct tracked *t = value;

	(void)key;
	if (!t->ended && !t->kernel && (!t->verdict || !t->told))
		decide(arg, t);
}

static int find_missed(void *arg, pid_t pid)
{
	struct decisions *s = arg;

	if (!hashmap_get(&s->processes, (uint64_t)pid))
		decisions_execed(s, pid, NULL, 0);
	return 0;
}

/* What there was no memory for. */
static void catch_up(struct decisions *s)
{
	s->missed = false;
	hashmap_each(&s->processes, decide_missed, s);
	s->missed |= procfs_each_process(find_missed, s) != 0;
}

void decisions_tidy(struct decisions *s, uint64_t now_ns)
{
	struct tidy y = {.s = s, .now = now_ns};

	s->round++;
	if (s->missed)
		catch_up(s);
	hashmap_each(&s->processes, tidy_one, &y);
	for (uint32_t i = 0; i < y.n; i++)
		forget(s, y.gone[i]);
}

const struct decision *decisions_of(const struct decisions *s, pid_t pid)
{
	const struct tracked *t = hashmap_get(&s->processes, (uint64_t)pid);

	return t && t->verdict ? &t->verdict->d : NULL;
}

const struct decision *decisions_of_set(const struct decisions *s, uint32_t set)
{
	const struct verdict *v = hashmap_get(&s->verdicts, verdict_key(set, true));

	if (!v)
		v = hashmap_get(&s->verdicts, verdict_key(set, false));
	return v ? &v->d : NULL;
}

void decisions_look_over(struct decisions *s)
{
	s->missed = true;
}

struct count {
	uint32_t all, profiled;
};

static void count_one(void *arg, uint64_t key, void *value)
{
	const struct tracked *t = value;
	struct count *c = arg;

	(void)key;
	c->all += !t->ended && !t->kernel;
	c->profiled += !t->ended && t->verdict && t->verdict->d.profile;
}

uint32_t decisions_processes(const struct decisions *s, uint32_t *profiled)
{
	struct count c = {0};

	hashmap_each(&s->processes, count_one, &c);
	*profiled = c.profiled;
	return c.all;
}

struct each {
	void (*each)(void *arg, const struct decision *);
	void *arg;
};

static void each_verdict(void *arg, uint64_t key, void *value)
{
	struct each *e = arg;

	(void)key;
	e->each(e->arg, &((struct verdict *)value)->d);
}

void decisions_each_set(const struct decisions *s, void (*each)(void *arg, const struct decision *),
			void *arg)
{
	struct each e = {each, arg};

	hashmap_each(&s->verdicts, each_verdict, &e);
}

/* ---- sweeping ---- */

struct sweep {
	struct decisions *s;
	bool (*used)(void *arg, uint32_t set);
	void *arg;
	struct verdict *gone[256];
	uint32_t n;
};

static void sweep_one(void *arg, uint64_t key, void *value)
{
	struct sweep *w = arg;
	struct verdict *v = value;

	(void)key;
	if (!v->holders && w->n < 256 && !w->used(w->arg, v->d.set))
		w->gone[w->n++] = v;
}

static bool has_verdict(void *arg, uint32_t set)
{
	return decisions_of_set(arg, set);
}

void decisions_sweep(struct decisions *s, bool (*used)(void *arg, uint32_t set), void *arg)
{
	struct sweep w = {.s = s, .used = used, .arg = arg};

	hashmap_each(&s->verdicts, sweep_one, &w);
	for (uint32_t i = 0; i < w.n; i++) {
		hashmap_del(&s->verdicts, verdict_key(w.gone[i]->d.set, w.gone[i]->known));
		free_verdict(w.gone[i]);
	}
	targets_sweep(s->o.targets, has_verdict, s);
}

/* ---- life ---- */

int decisions_new(struct decisions **ret, const struct decisions_options *o)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->o = *o;
	return 0;
}

static void free_tracked(void *arg, uint64_t key, void *value)
{
	(void)arg;
	(void)key;
	free(((struct tracked *)value)->cgroup);
	free(value);
}

void decisions_free(struct decisions *s)
{
	if (!s)
		return;
	hashmap_each(&s->processes, free_tracked, NULL);
	hashmap_each(&s->verdicts, free_one_verdict, NULL);
	hashmap_fini(&s->processes);
	hashmap_fini(&s->verdicts);
	free(s);
}
