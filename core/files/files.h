/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that processes map. A file is opened while /proc still shows its mapping, and the
 * worker inspects it. Then it stays open, unless its user has many of them: such a file is opened
 * again when it is needed. Equal content at equal places (device, inode, size, time of change) is
 * one struct file. For one thread.
 */
#ifndef FILES_FILES_H
#define FILES_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hashmap.h"
#include "plugin/plugin.h"
#include "process/process.h"
#include "process/procfs.h"
#include "files/internal/file_quota.h"
#include "worker/worker.h"

#define FILES_MAX_UNWINDERS 16

enum file_state {
	FILE_PENDING, /* the worker has not inspected it yet */
	FILE_READY,
	FILE_REFUSED, /* it can't be opened, or is no ELF file: `text` says why */
	FILE_MEMORY,  /* no program or library: mappings of it are memory without a file */
};

/* A mapping of a file; its name is the file's path. */
struct files_place {
	pid_t pid;
	struct procfs_mapping mapping;
};

/* What the descriptor of a file is of. */
struct file_source {
	bool readable;    /* it could be opened */
	bool remote;      /* a file of a file server: reading it can wait */
	uint64_t copied;  /* bytes of memory that it is a copy in; 0: it is the file itself */
	uint64_t copy_of; /* the device of the file then */
	struct files_place place; /* where it is mapped: it is opened again by that */
};

/* Of its inspections. */
struct file_counts {
	uint32_t shortages; /* that failed because memory was short */
	uint32_t awaited;   /* samples that wait for what is under way */
	uint32_t rests;     /* of what a brief one has omitted */
};

struct file {
	struct files *files;
	struct file_source source;
	uint32_t id; /* from 1 */
	enum file_state state;
	int fd;          /* -1: it is not open now; see files_hold() */
	pid_t pid;       /* process that mapped it first: debug files are searched below its root */
	uint32_t uid;    /* of that process: the user for whom the worker works */
	char *path;      /* a part of it, if paths take too much memory */
	char *text;      /* FILE_REFUSED: why */
	bool executable; /* a process runs it as its program */
	bool claimed;    /* a language unwinder claims code of it */
	bool inspecting; /* the worker does */
	bool unmapped;   /* no process mapped it at the last sweep */
	bool again;      /* its inspection was dropped: it is made if it is mapped */
	bool renewed;    /* it has new tables, until files_clear_renewed() */
	uint32_t uses;   /* of its descriptor: it can't be dropped; see files_hold() */
	uint64_t used_ns;  /* when a process or a collector was last seen to name it */
	uint64_t retry_ns; /* CLOCK_MONOTONIC: it is inspected again; 0: never */
	struct file_counts counts;
	struct inspection *inspection; /* FILE_READY */
	/* By unwinder, in the order of the set; NULL: no table. Part of the inspection. */
	const struct inspection_slab *slabs[FILES_MAX_UNWINDERS];

	/* Of file_index.c. */
	uint64_t added_ns; /* CLOCK_MONOTONIC */
	void *key;         /* identity, or path */
	size_t key_len;
	struct file *same_hash;
};

/* Files that were opened a moment ago. Processes with thousands of mappings of one file report them
 * in a row, and opening the file costs more than all else that is done for a mapping. */
#define FILES_RECENT 64u

struct files_recent {
	pid_t pid;
	uint32_t dev_major, dev_minor;
	uint64_t ino, generation;
	uint64_t opened_ns; /* CLOCK_MONOTONIC */
	struct file *file;  /* NULL: none */
};

struct files {
	struct files_recent recent[FILES_RECENT]; /* by inode number */
	struct worker *worker;                    /* borrowed */
	const struct plugin_set *unwinders;       /* borrowed */
	struct hashmap by_hash;                   /* of file_index.c */
	struct file **all;    /* by id; [0] and those of dropped files are NULL */
	uint64_t *dropped_ns; /* by id: when its file was dropped; 0: never */
	uint32_t n, cap;
	uint32_t lowest;         /* no lower id is free */
	struct file_quota quota; /* of those with a descriptor */
	uint32_t unreadable;     /* files that are known by their path only */
	uint64_t path_bytes;     /* of all files */
	uint32_t answers;        /* inspections that the worker finished */
	uint32_t notes;          /* sentences of unwinders about files that they cannot use */
	uint64_t retry_ns;       /* the earliest of all files; 0: none */
	bool shortage;           /* files_of() had no memory; cleared by its caller */
	bool later;              /* it could not open a file that it may open later; likewise */
};

int files_new(struct files **ret, struct worker *, const struct plugin_set *); /* 0 or -ENOMEM */
void files_free(struct files *); /* after the worker has stopped; NULL is fine */
/* Frees a file that nothing refers to, but perhaps records that the kernel wrote in the last
 * seconds. Its id is used again later. Not while it has `uses`. */
void files_drop(struct files *, uint32_t id);
void files_trim(struct files *); /* after files were dropped: gives memory back */
/* Is an inspection under way for which samples wait: the first, or of what that has omitted? */
bool files_is_awaited(const struct file *);
/* Has its inspection omitted a part? NULL: no. */
bool files_is_brief(const struct file *);
/* A step has stopped in code that a brief inspection may have omitted. true: it is under way now,
 * and this may be called again when it is over; false: the inspection is not brief, or what it has
 * omitted cannot be had. */
bool files_inspect_rest(struct file *);
/* The file of an executable mapping of a process; the worker inspects it if it is new. NULL:
 * anonymous memory; or, with `shortage` set, no memory: the mapping is to be read again later. */
struct file *files_of(struct files *, pid_t pid, const struct procfs_mapping *);
/* Whether the id was this file's at that time (CLOCK_MONOTONIC ns): it may be an earlier file's. */
bool files_is_of_time(const struct files *, uint32_t id, uint64_t time);
/* Inspects files again for which memory was short, a few times and ever more rarely. To be called
 * now and then with CLOCK_MONOTONIC ns; costs nothing while there are none. */
void files_retry(struct files *, uint64_t now);
/* A sample waits for the first inspection of the file, if it is pending: the more of them, the
 * earlier it is made. */
void files_await(struct files *, uint32_t id);
/* Clears `renewed` of all files. */
void files_clear_renewed(struct files *);
/* The descriptor of the file, which is opened again if it was closed, until files_release(). Or
 * -errno: it cannot be opened, or not now. Not while the worker is stopped. */
int files_hold(struct file *);
void files_release(struct file *);
/* Whether the open file is this file, which may have grown since. false also if it is not known
 * which file this is, as it could never be opened. */
bool files_is_same(const struct file *, int fd);
/* Sets the mapping's bias from the file's segments. false: it is not known (yet). */
bool files_base(struct process_mapping *);
/* The first file that the process maps of which the unwinder has a table; NULL: none. */
struct file *files_with_table(const struct process *, uint32_t unwinder);
/* The last part of the file's path. */
const char *files_base_name(const struct file *);
#endif
