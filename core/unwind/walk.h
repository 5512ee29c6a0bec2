/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinds a stack copy, or the stack of a thread that is stopped, in user space, step by step, with
 * the unwinders of a set. For one thread. */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/plugin.h"
#include "process/call.h"
#include "process/process.h"
#include "process/seen_frames.h"
#include "unwind/claims.h"
#include "files/files.h"
#include "unwind/made_code.h"
#include "unwind/sample.h"
#include "unwind/internal/walk_frames.h"

/* A step that the worker took, and where it began. */
struct walk_step {
	uint64_t pc, sp;
	int err; /* see worker_stepped */
	uint64_t regs[17], valid;
};

#define WALK_MAX_STEPS 512u /* that the worker takes for one stack */

/*
 * The worker's steps of one stack. A walk that needs another step ends and waits for it; the next
 * walk of the same stack repeats those that are here. Reference counted, as the worker may answer
 * after the stack was given up.
 */
struct walk_steps {
	uint32_t refs, n, cap;
	bool pending; /* the next step was requested */
	bool careful; /* the worker takes each step */
	struct walker *walker;
	struct walk_step *at;
};

struct walker {
	const struct plugin_set *unwinders; /* in order; borrowed, as are the next two */
	struct worker *worker;              /* takes steps that no table expresses */
	struct claims *claims;              /* NULL: memory without a file is not claimed */
	struct made_code *made;             /* NULL: it has no tables */
	struct walk_languages *languages;   /* of stopped threads; NULL: machine frames only */
	struct call_answers *calls;         /* NULL: none so far */
	struct seen_frames *seen;           /* of code made at run time; NULL: none so far */
	struct same_frames *same;           /* of its walks; NULL: none so far */
	/* Called after a step with the pages that it has read of a table; NULL: not. file 0: the
	 * table of memory without a file, by its number. */
	void (*touched)(void *arg, uint32_t unwinder, uint32_t file, uint64_t made,
			const uint32_t *pages, uint32_t n);
	void *arg;
	uint64_t walks;   /* so far */
	uint64_t helped;  /* steps that the worker took */
	uint64_t answers; /* the same, those that failed included */
	/* Of the current walk: */
	struct walk_steps **steps; /* what the worker did for it; NULL there: nothing yet */
	uint32_t step;             /* steps of them that it has used */
	bool waits;                /* it may request steps */
	pid_t pid;
	bool copy_full; /* the current sample's stack copy has its full size */
};

/* Unwinds a sample's stack copy. wait false: a file whose table is still being made is treated as a
 * file without a table, and a step of the worker that has no answer as a step that failed. *steps:
 * NULL at first; the caller keeps it while the sample waits, and releases it. */
void walk_stack(struct walker *, struct process *, const struct sample *, bool wait,
		struct walk_steps **steps, struct walk *out);
void walk_steps_release(struct walk_steps *); /* NULL is valid */
/* A file is dropped, and its number will be another file's. */
void walker_forget_file(struct walker *);
#endif
