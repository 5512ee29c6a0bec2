/* SPDX-License-Identifier: Apache-2.0 */
/* Walks one stack natively: the driver of the unwinders' steps over a copied stack. */
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

#define WALK_MAX_FRAMES 1024u

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
