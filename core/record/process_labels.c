/* SPDX-License-Identifier: Apache-2.0 */
#include "record/internal/process_labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/str.h"
#include "process/cgroup_namespace.h"
#include "target/labelset.h"

#define COMMON UINT32_MAX /* the set of labels that all processes had at first */
#define REREAD_NS 2000000000u

struct known {
	uint32_t set;
	uint64_t read_ns;
};

struct process_labels {
	struct targets *targets;
	struct cgroup_namespace at;
	struct hashmap known; /* struct known, by pid */
	struct fusee_label common[LABELSET_MAX];
	uint32_t ncommon;
};

/* 0: the process has ended, or there is no memory. */
static uint32_t read_set(struct process_labels *l, pid_t pid)
{
	char path[CGROUP_MAX];
	const struct target_process p = {.pid = pid, .cgroup = path, .name = ""};

	return cgroup_namespace_of(&l->at, pid, path) ? 0 : targets_labels(l->targets, &p, NULL);
}

static bool has(const struct fusee_label *labels, uint32_t n, const struct fusee_label *l)
{
	for (uint32_t i = 0; i < n; i++)
		if (str_equal(labels[i].key, l->key) && str_equal(labels[i].str, l->str))
			return true;
	return false;
}

static void find_common(struct process_labels *l, const pid_t *pids, uint32_t npids)
{
	bool first = true;

	for (uint32_t i = 0; i < npids; i++) {
		uint32_t n = 0, kept = 0;
		const struct fusee_label *set = targets_set(l->targets, read_set(l, pids[i]), &n);

		if (!set)
			continue;
		if (first)
			memcpy(l->common, set, n * sizeof(*set));
		l->ncommon = first ? n : l->ncommon;
		first = false;
		for (uint32_t k = 0; k < l->ncommon; k++)
			if (has(set, n, &l->common[k]))
				l->common[kept++] = l->common[k];
		l->ncommon = kept;
	}
}

int process_labels_new(struct process_labels **ret, struct targets *targets, const pid_t *pids,
		       uint32_t npids)
{
	struct process_labels *l = calloc(1, sizeof(*l));

	if (!l || cgroup_namespace_open(&l->at)) {
		free(l);
		return -ENOMEM;
	}
	l->targets = targets;
	find_common(l, pids, npids);
	*ret = l;
	return 0;
}

void process_labels_free(struct process_labels *l)
{
	if (!l)
		return;
	hashmap_fini_free(&l->known);
	free(l);
}

uint32_t process_labels_of(struct process_labels *l, pid_t pid, uint64_t now_ns)
{
	struct known *k = hashmap_get(&l->known, (uint64_t)pid);
	uint32_t set;

	if (k && now_ns - k->read_ns < REREAD_NS)
		return k->set;
	set = read_set(l, pid);
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k || hashmap_put(&l->known, (uint64_t)pid, k)) {
			free(k);
			return set ? set : COMMON;
		}
		k->set = COMMON;
	}
	k->set = set ? set : k->set; /* a process that has ended keeps its set */
	k->read_ns = now_ns;
	return k->set;
}

const struct fusee_label *process_labels_set(const struct process_labels *l, uint32_t set,
					     uint32_t *n)
{
	if (set != COMMON)
		return targets_set(l->targets, set, n);
	*n = l->ncommon;
	return l->common;
}
