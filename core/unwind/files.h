/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that targets map: opened while /proc still shows them, looked at by the worker, one
 * struct file for one content of one path. Files live until files_drop(). For one thread.
 */
#ifndef UNWIND_FILES_H
#define UNWIND_FILES_H

#include <stdint.h>
#include <sys/types.h>

#include "process/process.h"
#include "process/procfs.h"
#include "plugin/plugin.h"
#include "worker/worker.h"

#define FILES_MAX_UNWINDERS 8

enum file_state {
	FILE_ASKED, /* the worker is looking at it */
	FILE_READY,
	FILE_REFUSED, /* cannot be opened, or is no ELF file that we read: text says why */
};

struct file {
	uint32_t id; /* from 1 */
	enum file_state state;
	int fd;    /* -1: could not be opened */
	pid_t pid; /* who mapped it first: its root is where debug files are looked for */
	char *path, *text;
	bool executable;    /* a target runs it: not a library */
	bool claimed;       /* code of it, by a language unwinder */
	bool asked;         /* the worker is: it must stay */
	bool renewed;       /* it has tables that were missing; until files_clear_renewed() */
	uint64_t again_ns;  /* memory was short: when it is asked once more; 0: never */
	uint32_t shortages; /* so often */
	struct inspection *inspection; /* FILE_READY */
	const struct inspection_slab
		*slabs[FILES_MAX_UNWINDERS]; /* of each unwinder, in their order; NULL none */
	struct files *files;
};

/* The file that was opened last. A process with thousands of mappings of one file tells of them one
 * after the other, and opening costs more than all else that is done for a mapping. */
struct files_recent {
	pid_t pid;
	uint32_t dev_major, dev_minor;
	uint64_t ino, generation;
	uint64_t opened_ns;
	struct file *file; /* NULL: none */
};

struct files {
	struct files_recent recent;
	struct worker *worker;
	const struct plugin_set *unwinders;
	struct dict *keys; /* identity -> id */
	struct file **all; /* by id; [0] and dropped ones are NULL */
	uint32_t n, cap;
	uint32_t answers;  /* how many the worker gave: somebody's wait may be over */
	uint64_t again_ns; /* the first of the files', 0: none */
	bool shortage;     /* one could not be taken for want of memory; who looks clears it */
};

int files_new(struct files **ret, struct worker *, const struct plugin_set *unwinders);
void files_free(struct files *);
/* Nobody holds it any more. Should it be mapped again, it has the same id. Not while it is `asked`.
 */
void files_drop(struct files *, uint32_t id);
/* The file behind an executable mapping; NULL: anonymous memory, or, with `shortage` set, no memory
 * left: then the mapping is to be looked at again. Asks the worker if it is new. */
struct file *files_of(struct files *, pid_t pid, const struct procfs_mapping *);
/* Asks again, a few times and ever more rarely, for files that the worker was short of memory for.
 * To be called now and then (CLOCK_MONOTONIC ns); costs nothing while there are none. */
void files_retry(struct files *, uint64_t now);
void files_clear_renewed(struct files *); /* `renewed` was looked at */
/* The mapping's bias, from the file's segments; false: not known (yet). */
bool files_base(struct process_mapping *);
const char *files_base_name(const struct file *);
#endif
