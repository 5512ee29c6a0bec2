/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/process_tree.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "bpf/rates.h"

struct process_tree {
	struct bpf_sampler *bpf;
	struct hashmap pids; /* the tree itself, by pid */
};

int process_tree_new(struct process_tree **ret, struct bpf_sampler *bpf)
{
	struct process_tree *t = *ret = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->bpf = bpf;
	bpf_rates_set_default(bpf, BPF_RATE_NONE);
	return 0;
}

void process_tree_free(struct process_tree *t)
{
	if (!t)
		return;
	hashmap_fini(&t->pids);
	free(t);
}

static int list(struct process_tree *t, pid_t pid)
{
	return hashmap_put(&t->pids, (uint64_t)pid, t);
}

int process_tree_add(struct process_tree *t, pid_t pid, bool held)
{
	int r = list(t, pid);

	if (r)
		return r;
	return held ? bpf_rates_set_on_exec(t->bpf, pid)
		    : bpf_rates_set(t->bpf, pid, BPF_RATE_ANY, 0);
}

bool process_tree_has(const struct process_tree *t, pid_t pid)
{
	return hashmap_get(&t->pids, (uint64_t)pid);
}

void process_tree_forked(struct process_tree *t, pid_t parent, pid_t child)
{
	if (process_tree_has(t, parent))
		list(t, child);
	else
		hashmap_del(&t->pids, (uint64_t)child); /* an earlier process had this pid */
}

struct reread {
	struct process_tree *tree;
	void (*added)(void *arg, pid_t pid);
	void *arg;
};

static void reread(void *arg, pid_t pid)
{
	struct reread *r = arg;

	if (process_tree_has(r->tree, pid) || list(r->tree, pid))
		return;
	r->added(r->arg, pid);
}

void process_tree_reread(struct process_tree *t, void (*added)(void *arg, pid_t pid), void *arg)
{
	struct reread r = {t, added, arg};

	bpf_rates_each(t->bpf, reread, &r);
}

struct ended {
	pid_t pids[1024];
	uint32_t n;
};

static void find_ended(void *arg, uint64_t key, void *value)
{
	struct ended *e = arg;

	(void)value;
	if (e->n < sizeof(e->pids) / sizeof(e->pids[0]) && kill((pid_t)key, 0) && errno == ESRCH)
		e->pids[e->n++] = (pid_t)key;
}

void process_tree_sweep(struct process_tree *t)
{
	struct ended ended = {.n = 0};

	hashmap_each(&t->pids, find_ended, &ended);
	for (uint32_t i = 0; i < ended.n; i++)
		hashmap_del(&t->pids, (uint64_t)ended.pids[i]);
}
