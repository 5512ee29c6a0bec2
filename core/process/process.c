/* SPDX-License-Identifier: Apache-2.0 */
#include "process/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hashmap.h"
#include "process/procfs.h"

struct thread {
	char comm[16];
	uint64_t since; /* CLOCK_MONOTONIC ns */
	pid_t pid;
};

struct process_table {
	struct process_owner owner;
	struct hashmap pids;  /* pid -> struct process *, the newest */
	struct hashmap tids;  /* tid -> struct thread * */
	struct process **all; /* in order of id */
	size_t n, cap;
	uint64_t ids;      /* that were ever given */
	uint64_t mappings; /* of all processes */
};

int process_table_new(struct process_table **ret, const struct process_owner *owner)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	if (owner)
		(*ret)->owner = *owner;
	return 0;
}

static void free_process(struct process_table *t, struct process *p)
{
	if (t->owner.freed)
		t->owner.freed(t->owner.arg, p);
	process_forget_mappings(p);
	free(p);
}

void process_forget_mappings(struct process *p)
{
	p->table->mappings -= p->n;
	free(p->mappings);
	free(p->past);
	p->mappings = p->past = NULL;
	p->n = p->cap = p->last = p->npast = 0;
}

uint64_t process_mappings(const struct process_table *t)
{
	return t->mappings;
}

struct process *process_largest(const struct process_table *t)
{
	struct process *largest = NULL;

	for (uint64_t i = 0; i < t->n; i++)
		if (t->all[i]->n > (largest ? largest->n : 0))
			largest = t->all[i];
	return largest;
}

void process_table_free(struct process_table *t)
{
	if (!t)
		return;
	for (uint64_t i = 0; i < t->n; i++)
		free_process(t, t->all[i]);
	hashmap_fini_free(&t->tids);
	hashmap_fini(&t->pids);
	free(t->all);
	free(t);
}

struct process *process_find(struct process_table *t, pid_t pid)
{
	return hashmap_get(&t->pids, (uint64_t)pid);
}

struct process *process_by_id(struct process_table *t, uint64_t id)
{
	uint64_t lo = 0, hi = t->n;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (t->all[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n && t->all[lo]->id == id ? t->all[lo] : NULL;
}

static struct process *begin(struct process_table *t, pid_t pid, const char *comm)
{
	struct process *p, *old = process_find(t, pid);

	if (!ARRAY_ROOM(t->all, t->n, t->cap))
		return NULL;
	p = calloc(1, sizeof(*p) + t->owner.bytes);
	if (!p)
		return NULL;
	p->table = t;
	p->id = ++t->ids;
	p->pid = pid;
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
	if (hashmap_put(&t->pids, (uint64_t)pid, p)) {
		free(p);
		return NULL;
	}
	if (old)
		old->replaced = true;
	t->all[t->n++] = p;
	return p;
}

struct process *process_get(struct process_table *t, pid_t pid)
{
	struct process *p = process_find(t, pid);

	return p ? p : begin(t, pid, "");
}

struct process *process_exec(struct process_table *t, pid_t pid, uint64_t time, const char *comm)
{
	struct process *old = process_find(t, pid);

	if (old)
		old->ended = time;
	process_thread_comm(t, pid, pid, comm, time);
	return begin(t, pid, comm);
}

/* Ends a process whose pid does not exist any more, or is another process's: the record of its end
 * was lost. */
static void end_if_vanished(struct process_table *t, struct process *p)
{
	if (p->ended)
		return;
	if (process_find(t, p->pid) != p || (kill(p->pid, 0) && errno == ESRCH))
		p->ended = 1;
}

/* Threads whose process is not known. If there are more, they are found next time. */
struct forgotten {
	struct process_table *table;
	pid_t tids[1024];
	uint32_t n;
};

static void find_forgotten(void *arg, uint64_t tid, void *value)
{
	const struct thread *th = value;
	struct forgotten *f = arg;

	if (f->n < sizeof(f->tids) / sizeof(f->tids[0]) && !process_find(f->table, th->pid))
		f->tids[f->n++] = (pid_t)tid;
}

/* The records of their ends were lost, or came before their names. */
static void forget_threads(struct process_table *t)
{
	struct forgotten f = {.table = t};

	hashmap_each(&t->tids, find_forgotten, &f);
	for (uint32_t i = 0; i < f.n; i++)
		free(hashmap_del(&t->tids, (uint64_t)f.tids[i]));
}

void process_sweep(struct process_table *t, uint64_t before,
		   bool (*keep)(void *arg, struct process *), void *arg)
{
	uint64_t kept = 0;

	for (uint64_t i = 0; i < t->n; i++) {
		struct process *p = t->all[i];

		end_if_vanished(t, p);
		if (!p->ended || p->ended >= before || keep(arg, p)) {
			t->all[kept++] = p;
			continue;
		}
		if (process_find(t, p->pid) == p)
			hashmap_del(&t->pids, (uint64_t)p->pid);
		free_process(t, p);
	}
	t->n = kept;
	forget_threads(t);
}

uint64_t process_count(const struct process_table *t)
{
	return t->n;
}

void process_each(struct process_table *t, void (*each)(void *arg, struct process *), void *arg)
{
	for (uint64_t i = 0; i < t->n; i++)
		each(arg, t->all[i]);
}

struct process *process_fork(struct process_table *t, pid_t parent, pid_t child)
{
	struct process *from = process_find(t, parent), *p;

	p = begin(t, child, from ? from->comm : "");
	if (!p || !from)
		return p;
	memcpy(p->name, from->name, sizeof(p->name));
	p->program = from->program;
	p->started = from->started;
	p->ancestors[0] = from->id;
	p->ancestors[1] = from->ancestors[0];
	p->mappings = from->n ? malloc(from->n * sizeof(*p->mappings)) : NULL;
	if (p->mappings) {
		memcpy(p->mappings, from->mappings, from->n * sizeof(*p->mappings));
		p->n = p->cap = from->n;
		t->mappings += p->n;
	}
	if (t->owner.forked)
		t->owner.forked(t->owner.arg, from, p);
	return p;
}

bool process_thread_exited(struct process_table *t, struct process *p, pid_t tid, uint64_t time)
{
	free(hashmap_del(&t->tids, (uint64_t)tid));
	if (!p)
		return false;
	p->last_exited = tid;
	if (tid != p->pid && !p->leaderless)
		return false;
	p->leaderless = procfs_living_thread(p->pid) != p->pid;
	if (!p->leaderless)
		p->ended = time;
	return !p->leaderless;
}

void process_ran(struct process *p, pid_t tid)
{
	/* A thread that has exited may still be sampled on its way out. */
	if (!p->ended || tid == p->last_exited)
		return;
	p->ended = 0;
	p->leaderless = true;
}

uint32_t process_first_above(const struct process *p, uint64_t addr)
{
	uint32_t lo = 0, hi = p->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->mappings[mid].hi > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Makes room for two mappings: one in the middle of another splits it. Most of a machine's
 * processes sleep and have 2 to 8, so little is in reserve. */
static int reserve(struct process *p)
{
	uint32_t cap = p->n + p->n / 2 + 4; /* a child has as many as it has mappings */
	struct process_mapping *m;

	if (p->n + 2 <= p->cap)
		return 0;
	m = realloc(p->mappings, cap * sizeof(*m));
	if (!m)
		return -ENOMEM;
	p->mappings = m;
	p->cap = cap;
	return 0;
}

static void insert(struct process *p, uint32_t at, const struct process_mapping *m)
{
	memmove(&p->mappings[at + 1], &p->mappings[at], (p->n - at) * sizeof(*m));
	p->mappings[at] = *m;
	p->n++;
	p->table->mappings++;
}

/* Keeps a mapping that is covered by another: a sample from before may still wait for its table, or
 * be of code that the memory has no more. */
static void keep_past(struct process *p, const struct process_mapping *old, uint64_t until)
{
	if ((!old->file && !old->text.file && !old->text.differed) || !until)
		return;
	if (!p->past)
		p->past = calloc(PROCESS_PAST, sizeof(*p->past));
	if (!p->past)
		return;
	p->past[p->npast % PROCESS_PAST] = *old;
	p->past[p->npast % PROCESS_PAST].text = (struct process_text){0};
	p->past[p->npast++ % PROCESS_PAST].until = until;
}

struct process_mapping *process_mapping_at(struct process *p, uint64_t addr, uint64_t time)
{
	struct process_mapping *m = process_mapping(p, addr);

	if (m && m->since <= time)
		return m;
	for (uint32_t i = 0; i < p->npast && i < PROCESS_PAST; i++) {
		struct process_mapping *old = &p->past[(p->npast - 1 - i) % PROCESS_PAST];

		if (addr >= old->lo && addr < old->hi && old->since <= time && time < old->until)
			return old;
	}
	return NULL;
}

int process_map(struct process *p, const struct process_mapping *m)
{
	uint32_t first = process_first_above(p, m->lo), last;

	if (m->lo >= m->hi)
		return 0;
	if (p->n >= PROCESS_MAX_MAPPINGS)
		return -E2BIG;
	if (reserve(p))
		return -ENOMEM;
	for (uint32_t i = first; i < p->n && p->mappings[i].lo < m->hi; i++)
		keep_past(p, &p->mappings[i], m->since);
	if (first < p->n && p->mappings[first].lo < m->lo) {
		struct process_mapping tail = p->mappings[first];

		p->mappings[first].hi = m->lo;
		first++;
		if (tail.hi > m->hi) {
			tail.offset += m->hi - tail.lo;
			tail.lo = m->hi;
			insert(p, first, &tail);
		}
	}
	for (last = first; last < p->n && p->mappings[last].hi <= m->hi; last++)
		;
	if (last < p->n && p->mappings[last].lo < m->hi) {
		p->mappings[last].offset += m->hi - p->mappings[last].lo;
		p->mappings[last].lo = m->hi;
	}
	memmove(&p->mappings[first], &p->mappings[last], (p->n - last) * sizeof(*m));
	p->n -= last - first;
	p->table->mappings -= last - first;
	insert(p, first, m);
	p->last = first;
	return 0;
}

void process_drop_unseen(struct process *p, uint64_t time, uint64_t kept_since)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		if (p->mappings[i].seen || p->mappings[i].since > kept_since)
			p->mappings[kept++] = p->mappings[i];
		else
			keep_past(p, &p->mappings[i], time);
	}
	p->table->mappings -= p->n - kept;
	p->n = kept;
	p->last = 0;
}

struct process_mapping *process_mapping(struct process *p, uint64_t addr)
{
	struct process_mapping *m;
	uint32_t i;

	if (p->last < p->n) {
		m = &p->mappings[p->last];
		if (addr >= m->lo && addr < m->hi)
			return m;
	}
	i = process_first_above(p, addr);
	if (i == p->n || addr < p->mappings[i].lo)
		return NULL;
	p->last = i;
	return &p->mappings[i];
}

int process_thread_comm(struct process_table *t, pid_t pid, pid_t tid, const char *comm,
			uint64_t since)
{
	struct thread *th = hashmap_get(&t->tids, (uint64_t)tid);
	int r;

	if (!th) {
		th = calloc(1, sizeof(*th));
		if (!th)
			return -ENOMEM;
		r = hashmap_put(&t->tids, (uint64_t)tid, th);
		if (r) {
			free(th);
			return r;
		}
	}
	if (th->since > since)
		return 0;
	th->since = since;
	th->pid = pid;
	snprintf(th->comm, sizeof(th->comm), "%s", comm);
	return 0;
}

const char *process_comm(struct process_table *t, const struct process *p, pid_t tid)
{
	const struct thread *th = hashmap_get(&t->tids, (uint64_t)tid);

	return th && th->pid == p->pid && *th->comm ? th->comm : p->comm;
}
