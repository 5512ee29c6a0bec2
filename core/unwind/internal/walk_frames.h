/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of a walk. Of a stack that has more than are kept, the inner and the outer frames are
 * kept: while the walk goes on, the outer frames lie in a ring behind the inner frames.
 */
#ifndef UNWIND_WALK_FRAMES_H
#define UNWIND_WALK_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../bpf/frame.h"

#define WALK_MAX_FRAMES 4224u /* kernel frames included */
#define WALK_INNER_FRAMES (WALK_MAX_FRAMES / 2)
#define WALK_OUTER_FRAMES (WALK_MAX_FRAMES - WALK_INNER_FRAMES)
/* That a walk passes: over memory, where 8 MiB hold so many frames of two words; over a copy. */
#define WALK_MOST_FRAMES (1u << 19)
#define WALK_COPY_FRAMES (1u << 13)

/*
 * A frame. It is also a dictionary key, so there is no padding, and fields that the kind does not
 * have are 0. The address of a caller lies inside its call instruction.
 *
 *	kind             file     addr           process  extra        generation
 *	FRAME_FILE       its id   file offset    0        0            0
 *	FRAME_ANONYMOUS  0        address        its id   0            of its code (claims.h)
 *	FRAME_PUSHED     0        first word     its id   other words  number of the unwinder
 *	FRAME_KERNEL     0        kernel address 0        0            0
 *	FRAME_OMITTED    0        the least n    0        0            0
 *
 * Until its sample is delivered an anonymous frame has extra[1] = 1 if its address was interrupted
 * and is in no call: the leaf's, or that of a frame below a signal handler.
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

struct walk {
	/* Leaf first: up to 128 kernel frames, then user frames. One more: FRAME_OMITTED. */
	struct walk_frame frames[WALK_MAX_FRAMES + 1];
	uint32_t n;
	uint32_t outer;   /* frames so far that are not inner frames; 0 behind walk_close() */
	uint32_t most;    /* outer frames that may be put */
	uint32_t guessed; /* number of guessed frames */
	/* The stack passes through code that a language unwinder claims and whose frames only the
	 * kernel can read, so they are missing here. */
	bool passed;
	bool continued;     /* its outer part is a continuation that the kernel has sent */
	const char *reason; /* why the stack is truncated; NULL: it is complete. Static */
	/* Its table, or a step through it, is still being made: the sample is to be walked again
	 * later. Then the other fields mean nothing. NULL: none. */
	const struct file *waiting;
};

/* A stack of no frames that is complete. most: frames that may be put. */
void walk_clear(struct walk *, uint32_t most);
/* Appends the caller of the frame before. false: it would be one too many. */
bool walk_put(struct walk *, const struct walk_frame *);
/* Removes the last frame if it is the machine's and not an outer frame. */
void walk_omit_machine(struct walk *);
/* The walk has ended: puts the outer frames behind the inner frames, with one FRAME_OMITTED between
 * them if frames were passed that are not kept. */
void walk_close(struct walk *);
/* The walk has ended before the outermost frame: keeps the inner frames alone. */
void walk_drop_outer(struct walk *);

/* The frame for n omitted frames, n > 0: its addr is the largest power of 2 that is not above n, so
 * that stacks which differ in n alone are mostly equal. It represents addr to 2 * addr - 1. */
struct walk_frame walk_omitted(uint64_t n);
void walk_reverse(struct walk_frame *, uint32_t n); /* the order of n frames */
#endif
