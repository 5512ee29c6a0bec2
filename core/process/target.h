/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: what discovery says of processes and control groups, and from it each process's label
 * set. Label sets are interned: equal ones have one id. For one thread.
 */
#ifndef PROCESS_TARGET_H
#define PROCESS_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <fusee/plugin.h>

#include "base/buf.h"

struct targets;

int targets_new(struct targets **ret); /* 0 or -ENOMEM */
void targets_free(struct targets *);   /* NULL is fine */

/*
 * What one source (a discovery instance) says. `source`: any number, the same for its lifetime.
 * Values are cut at 256 bytes, labels without a value are left out. 0; -EINVAL: a target without
 * key, match or what it matches by, or a label without a name of [a-zA-Z_][a-zA-Z0-9_]*, with *why
 * set to static text (NULL otherwise); -ENOSPC: there are 200,000 already; -ENOMEM.
 */
int targets_put(struct targets *, uint32_t source, const struct fusee_target *, const char **why);
int targets_del(struct targets *, uint32_t source, struct fusee_str key); /* -ENOENT */
/* What is put or deleted between these two is seen at once by the commit. */
void targets_begin(struct targets *, uint32_t source);
void targets_commit(struct targets *, uint32_t source);
void targets_forget(struct targets *, uint32_t source); /* all of it */
bool targets_synced(const struct targets *, uint32_t source);

/* Raised whenever anything of this changes: cheap to look at. */
uint64_t targets_generation(const struct targets *);
/* What changed since the last call: true: any process's labels may have. Else only those of the
 * pids that each (NULL: nobody asks) is called with; some may come twice. */
bool targets_changes(struct targets *, void (*each)(void *arg, pid_t pid), void *arg);

/* A process asked about. */
struct target_process {
	pid_t pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat; 0 unknown */
	const char *cgroup;   /* its control group's path, "" unknown */
	const char *name;     /* executable's base name, "" unknown */
};

#define TARGET_NONE 0u
/* The id of its label set (`process`, `cgroup` and `host` always in it, `pid` never; at most 32);
 * *known (NULL: not asked): a target of some source matched it. Targets of one rank that say
 * something of one label: the lowest source, then the least key. Sets live until targets_sweep().
 * TARGET_NONE: no memory. */
uint32_t targets_labels(struct targets *, const struct target_process *, bool *known);
/* An id's labels, sorted by name, text ones; live as long as the set. NULL: no such id. */
const struct fusee_label *targets_set(const struct targets *, uint32_t id, uint32_t *n);
/* Sets that `used` does not want are freed; their ids are never used again. */
void targets_sweep(struct targets *, bool (*used)(void *arg, uint32_t id), void *arg);

/* For `fusee ctl targets`. */
void targets_each(const struct targets *,
		  void (*each)(void *arg, uint32_t source, const struct fusee_target *), void *arg);
uint32_t targets_count(const struct targets *);
uint32_t targets_count_of(const struct targets *, uint32_t source);
#endif
