/* SPDX-License-Identifier: Apache-2.0 */
/* Walks one stack natively: the driver of the unwinders' steps over a copied stack. */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/plugin.h"
#include "process/process.h"
#include "unwind/claims.h"
#include "unwind/files.h"
#include "unwind/sample.h"

#define WALK_MAX_FRAMES 1024u

enum walk_frame_flags {
	WALK_KERNEL = 1,    /* addr is a kernel address */
	WALK_ANONYMOUS = 2, /* addr is a runtime address in memory without a file */
	WALK_GUESSED = 4,
	WALK_PUSHED = 8, /* by a language unwinder: addr and extra are its words, generation is its
			    number */
};

/* One frame. Also a dictionary key: no padding. */
struct walk_frame {
	uint32_t file; /* struct file's id; 0: WALK_KERNEL or WALK_ANONYMOUS */
	uint32_t flags;
	uint64_t addr;    /* file offset of the code; of a caller: inside its call instruction */
	uint64_t process; /* WALK_ANONYMOUS, WALK_PUSHED: id of the process, else 0 */
	uint64_t extra;   /* WALK_PUSHED, else 0 */
	uint32_t generation, pad; /* of its code; see sampling/claims.h */
};

struct walk {
	struct walk_frame
		frames[WALK_MAX_FRAMES + 128]; /* leaf first; kernel frames may come on top */
	uint32_t n;
	uint32_t guessed;   /* how many are */
	bool passed;        /* code that a language unwinder claims, whose frames only the kernel
			       can read: they are not here */
	const char *reason; /* why the stack is cut; NULL: it is whole. Static text */
	const struct file
		*waiting; /* its table is not there yet: walk again later. Nothing else is valid */
};

struct walker {
	const struct plugin_set *unwinders; /* native ones, in order */
	struct worker *worker;              /* for rows that no table expresses */
	struct claims *claims;              /* of memory without a file */
	uint64_t walks;                     /* so far */
	bool careful;                       /* this one asks the worker at each step */
	bool copy_full;                     /* this sample's stack copy has the largest size */
	uint64_t helped;                    /* steps that the worker took */
};

/* wait false: a file whose table is not there yet is treated as one that has none. */
void walk_stack(struct walker *, struct process *, const struct sample *, bool wait,
		struct walk *out);
/* A plugin's reason, which may be a number that it has no text for. */
const char *walk_reason(const struct fusee_unwinder_ops *, uint32_t error);
#endif
