/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinds a stack copy in user space, step by step, with the unwinders of a set. For one thread. */
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
 *	FRAME_PUSHED     0        first word     its id   second word  number of the unwinder
 *	FRAME_KERNEL     0        kernel address 0        0            0
 */
struct walk_frame {
	uint32_t file;
	uint16_t kind; /* enum frame_kind */
	uint16_t guessed;
	uint64_t addr;
	uint64_t process;
	uint64_t extra;
	uint32_t generation, pad;
};
_Static_assert(sizeof(struct walk_frame) == 40, "no padding");

struct walk {
	/* Leaf first: up to 128 kernel frames, then user frames. */
	struct walk_frame frames[WALK_MAX_FRAMES + 128];
	uint32_t n;
	uint32_t guessed; /* number of guessed frames */
	/* The stack passes through code that a language unwinder claims and whose frames only the
	 * kernel can read, so they are missing here. */
	bool passed;
	const char *reason; /* why the stack is truncated; NULL: it is complete. Static */
	/* Its table is still being made: the sample is to be walked again later. Then the other
	 * fields mean nothing. NULL: none. */
	const struct file *waiting;
};

struct walker {
	const struct plugin_set *unwinders; /* in order; borrowed, as are the next two */
	struct worker *worker;              /* takes steps that no table expresses */
	struct claims *claims;              /* NULL: memory without a file is not claimed */
	uint64_t walks;                     /* so far */
	uint64_t helped;                    /* steps that the worker took */
	bool careful;                       /* the current walk lets the worker take each step */
	bool copy_full;                     /* the current sample's stack copy has its full size */
};

/* Unwinds a sample's stack copy. wait false: a file whose table is still being made is treated as a
 * file without a table. */
void walk_stack(struct walker *, struct process *, const struct sample *, bool wait,
		struct walk *out);
/* The text of an unwinder's reason. Static. */
const char *walk_reason(const struct fusee_unwinder_ops *, uint32_t error);
#endif
