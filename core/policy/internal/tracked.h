/* SPDX-License-Identifier: Apache-2.0 */
/* What the decisions keep of one process. For decisions.c. */
#ifndef POLICY_TRACKED_H
#define POLICY_TRACKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/internal/decision_cache.h"
#include "process/cgroup_namespace.h"

/* Read from a program's file; "": the file does not have it. */
struct program {
	char build_id[129]; /* hexadecimal digits */
	char compiler[256];
};

/* A reading of a control group's path. It is still right for a process that is in the same group of
 * cgroup2 while nothing was moved. */
struct cgroup_reading {
	uint64_t moves; /* the counter of moves then; 0: unknown */
	uint64_t group; /* procfs_cgroup_id(); 0: unknown */
};

struct tracked {
	pid_t pid;
	uint64_t identity; /* procfs_identity(); 0: not read yet */
	uint64_t ended;    /* CLOCK_MONOTONIC ns; 0: it runs */
	uint64_t execed;   /* CLOCK_MONOTONIC ns: it has run its program since then or longer */
	uint32_t since;    /* the round of its fork or exec */
	char name[64];
	char *executable;                 /* path; NULL: unknown */
	char *cgroup;                     /* NULL: unknown */
	struct program *program;          /* NULL: its file was not read yet */
	struct cgroup_reading read;       /* its own; moves 0: cgroup was not read of it */
	struct cgroup_reading inherited;  /* of the parent, whose cgroup it has */
	bool kernel;                      /* a kernel thread */
	bool known;                       /* some discovery instance matched it */
	bool reported;                    /* changed() succeeded for this process and decision */
	struct cached_decision *decision; /* NULL: none */
};

/* Forgets what is known of the program, except its name and identity. */
void tracked_reset(struct tracked *);
/* Copies the parent's data to a forked child, which runs the same program. Texts without memory are
 * unknown. */
void tracked_inherit(struct tracked *child, const struct tracked *parent);
void tracked_free(struct tracked *);
/* Reads the name and path of the executable; if the executable cannot be read, the name is that of
 * the main thread. 0 or -errno. */
int tracked_read_name(struct tracked *);
/* 0 or -errno; *changed: the path differs from the last. */
int tracked_read_cgroup(struct tracked *, const struct cgroup_namespace *, bool *changed);
/* Borrows its texts. */
struct target_process tracked_target(const struct tracked *);
#endif
