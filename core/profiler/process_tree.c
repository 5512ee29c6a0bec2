/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/process_tree.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "bpf/rates.h"
#include "process/cgroup.h"
#include "process/procfs.h"

#define POLL_NS 250000000u

struct process_tree {
	struct bpf_sampler *bpf;
	struct hashmap pids; /* the tree itself, by pid */
	uint32_t joined;     /* bpf_rates_joined() when the kernel's processes were last listed */
	const char *polled[PROCESS_TREE_GROUPS];
	uint32_t npolled;
	uint64_t poll_ns; /* the next reading of groups */
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

int process_tree_follow_group(struct process_tree *t, const char *dir)
{
	uint64_t id;
	int r = cgroup_id(dir, &id);

	if (!r)
		r = bpf_rates_add_group(t->bpf, id);
	if (r != -ENOTSUP)
		return r;
	if (t->npolled == PROCESS_TREE_GROUPS)
		return -E2BIG;
	t->polled[t->npolled++] = dir;
	return 0;
}

static bool is_listed(const struct process_tree *t, pid_t pid)
{
	return hashmap_get(&t->pids, (uint64_t)pid);
}

static int see(void *arg, pid_t pid)
{
	struct process_tree *t = arg;

	if (!is_listed(t, pid) && !procfs_is_own(pid))
		process_tree_add(t, pid, false);
	return 0;
}

void process_tree_poll(struct process_tree *t, uint64_t now)
{
	if (!t->npolled || now < t->poll_ns)
		return;
	t->poll_ns = now + POLL_NS;
	for (uint32_t i = 0; i < t->npolled; i++)
		cgroup_each_process(t->polled[i], see, t);
}

static void list_all(void *arg, pid_t pid)
{
	list(arg, pid);
}

bool process_tree_has(struct process_tree *t, pid_t pid)
{
	uint32_t joined;

	if (is_listed(t, pid))
		return true;
	joined = bpf_rates_joined(t->bpf);
	if (joined == t->joined)
		return false;
	t->joined = joined;
	bpf_rates_each(t->bpf, list_all, t);
	return is_listed(t, pid);
}

void process_tree_forked(struct process_tree *t, pid_t parent, pid_t child)
{
	if (is_listed(t, parent))
		list(t, child);
	else if (is_listed(t, child) && !bpf_rates_has(t->bpf, child))
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

	if (is_listed(r->tree, pid) || list(r->tree, pid))
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
