/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinds a stack copy, or the stack of a thread that is stopped, in user space, step by step, with
 * the unwinders of a set. For one thread. */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "../../bpf/frame.h"
#include "plugin/plugin.h"
#include "process/process.h"
#include "unwind/claims.h"
#include "unwind/files.h"
#include "unwind/sample.h"

#define WALK_MAX_FRAMES 4096u

/*
 * A frame. It is also a dictionary key, so there is no padding, and fields that the kind does not
 * have are 0. The address of a caller lies inside its call instruction.
 *
 *	kind             file     addr           process  extra        generation
 *	FRAME_FILE       its id   file offset    0        0            0
 *	FRAME_ANONYMOUS  0        address        its id   0            of its code (claims.h)
 *	FRAME_PUSHED     0        first word     its id   other words  number of the unwinder
 *	FRAME_KERNEL     0        kernel address 0        0            0
 */
struct walk_frame {
	uint32_t file;
	uint16_t kind; /* enum frame_kind */
	uint16_t guessed;
	uint64_t addr;
	uint64_t process;
	uint64_t extra[3];
	uint32_t generation;
	uint32_t flags; /* of a pushed frame: enum fusee_frame_flags */
};
_Static_assert(sizeof(struct walk_frame) == 56, "no padding");

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

struct walk {
	/* Leaf first: up to 128 kernel frames, then user frames. */
	struct walk_frame frames[WALK_MAX_FRAMES + 128];
	uint32_t n;
	uint32_t guessed; /* number of guessed frames */
	/* The stack passes through code that a language unwinder claims and whose frames only the
	 * kernel can read, so they are missing here. */
	bool passed;
	const char *reason; /* why the stack is truncated; NULL: it is complete. Static */
	/* Its table, or a step through it, is still being made: the sample is to be walked again
	 * later. Then the other fields mean nothing. NULL: none. */
	const struct file *waiting;
};

struct walker {
	const struct plugin_set *unwinders; /* in order; borrowed, as are the next two */
	struct worker *worker;              /* takes steps that no table expresses */
	struct claims *claims;              /* NULL: memory without a file is not claimed */
	struct walk_languages *languages;   /* of stopped threads; NULL: machine frames only */
	uint64_t walks;                     /* so far */
	uint64_t helped;                    /* steps that the worker took */
	uint64_t answers;                   /* the same, those that failed included */
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
#endif
