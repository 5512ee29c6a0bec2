/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the processes and control groups that discovery plugins found, with their labels, and
 * the label set of each process that follows from them. Label sets are interned: equal sets have
 * equal ids. All calls from one thread.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <fusee/plugin.h>

struct targets;

int targets_new(struct targets **ret); /* 0 or -ENOMEM */
void targets_free(struct targets *);   /* NULL is valid */

/*
 * Adds or replaces the target of that key. `source`: a number that the caller chooses for each
 * discovery instance. Texts are copied. Values are truncated to 256 bytes; labels without a value
 * are ignored. -EINVAL: *why (else NULL) is a static sentence; -EDQUOT: label texts of the
 * process's user, or of all, take too much memory: the target has no labels; -ENOSPC: there are
 * 200,000 targets; -ENOMEM.
 */
int targets_put(struct targets *, uint32_t source, const struct fusee_target *, const char **why);
/* 0 or -ENOENT. */
int targets_del(struct targets *, uint32_t source, struct fusee_str key);
/* Puts and deletions between begin and commit become visible together, at the commit, which also
 * removes the source's targets that were not put again. */
void targets_begin(struct targets *, uint32_t source);
void targets_commit(struct targets *, uint32_t source);
/* Removes all targets of the source. */
void targets_forget(struct targets *, uint32_t source);
/* Whether the source has committed at least once. */
bool targets_synced(const struct targets *, uint32_t source);

/* A number that grows whenever a visible target is added or removed. */
uint64_t targets_generation(const struct targets *);
/* Reports what changed since the last call. true: the labels of any process may have changed.
 * false: only those of the pids that each() is called with, some of them twice. each may be
 * NULL. */
bool targets_changes(struct targets *, void (*each)(void *arg, pid_t pid), void *arg);
/* The labels of the pid were looked up: its last changes are not to be reported. */
void targets_forget_change(struct targets *, pid_t pid);

/* A process whose labels are looked up. */
struct target_process {
	pid_t pid;
	uint64_t identity;  /* procfs_identity(); 0: unknown */
	const char *cgroup; /* path of its control group; "": unknown */
	const char *name;   /* base name of its executable; "": unknown */
	/* NULL: unknown. The path of its executable, its build ID and its compiler. */
	const char *executable, *build_id, *compiler;
};

/* Labels on request, in addition to those of sources. */
struct target_labels {
	/* Which label's value becomes `service_name`: the first of these names (struct fusee_str)
	 * that a set has with a value; without any of them it is that of `process`, or
	 * "unknown_service". "service_name" names the sources' own label. */
	struct fusee_table service_name;
	bool kernel; /* its release */
	bool executable, build_id, compiler;
};
/* Borrowed until the next call. NULL, the initial value: no such labels, and service_name only from
 * a source. All processes must be looked up anew afterwards. */
void targets_set_labels(struct targets *, const struct target_labels *);

#define TARGET_NONE 0u
#define TARGET_REFUSED "[too many label texts]"
/*
 * The id of the process's label set, of at most 32 labels; `process`, `cgroup` and `host` are
 * always among them, `pid` never. The value of a label comes from the first target that has the
 * label: by pid, by control group and then the groups above, then fusee's own knowledge of the
 * process, then by a label found so far; among targets of one kind the lowest source, then the
 * lowest key. *known (may be NULL): at least one target matched. If label texts of the process's
 * user, or of all, take too much memory, a new set has `host`, an empty `cgroup` and TARGET_REFUSED
 * as `process` only; once there is room, targets_changes() reports it. The set is valid until
 * targets_sweep(). TARGET_NONE: no memory.
 */
uint32_t targets_labels(struct targets *, const struct target_process *, bool *known);

/* Whether a target of the pid, of that source (0: of any), lacks labels that its source named as
 * `later`. */
bool targets_lack_labels(const struct targets *, pid_t pid, uint32_t source);
/* Whether a label of this name may be another once processes have these labels. */
bool targets_may_change(const struct targets *, struct fusee_str name);
/* How many names are known of such labels. It grows when targets_may_change() says so of more. */
uint32_t targets_later_names(const struct targets *);

#define TARGET_OWN UINT32_MAX
/* Why a process has a label. */
struct target_origin {
	uint32_t source; /* of the target that has the label; TARGET_OWN: fusee itself knows it */
	uint32_t match;  /* enum fusee_match of that target */
	/* The control group, or the name of the label, that it matched by; of TARGET_OWN: fusee's
	 * origin of it */
	struct fusee_str by;
	struct fusee_str from; /* of service_name: another label, whose value it is; "": none */
};
/* Calls each() with the labels that targets_labels() finds, before a set of them is made. 0 or
 * -ENOMEM. */
int targets_explain(struct targets *, const struct target_process *,
		    void (*each)(void *arg, const struct fusee_label *,
				 const struct target_origin *),
		    void *arg);
/* The labels of a set, sorted by name, all with text values. They are valid as long as the set.
 * NULL: no such id. */
const struct fusee_label *targets_set(const struct targets *, uint32_t id, uint32_t *n);
/* Frees the sets for which used() returns false. Their ids are not used again. */
void targets_sweep(struct targets *, bool (*used)(void *arg, uint32_t id), void *arg);

/* Calls each() for each visible target. */
void targets_each(const struct targets *,
		  void (*each)(void *arg, uint32_t source, const struct fusee_target *), void *arg);
uint32_t targets_count(const struct targets *);
/* Bytes of label texts. */
uint64_t targets_text_bytes(const struct targets *);
uint32_t targets_count_of(const struct targets *, uint32_t source);
#endif
