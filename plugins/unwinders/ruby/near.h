/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is kept while the control frames of one C frame are pushed. Control frames lie one above the
 * other, and the environments of methods one below the other at the other end of the VM's stack, so
 * that one read holds several.
 *
 * * A function whose name was emitted is remembered by the addresses of its iseq and its method
 * entry. Only the garbage collector frees these, and only if it did not reach them when it marked
 * objects. So an iseq that runs while nothing is being marked exists until the next collection
 * begins, and the number of collections is a part of the key.
 */
#ifndef RUBY_NEAR_H
#define RUBY_NEAR_H

#include "state.h"

#define FRAMES_NEAR 1024u /* powers of two: bytes */
#define FRAMES_FIRST 256u /* most C frames have few control frames */
#define VALUES_NEAR 512u

/* In the step's half of the buffer, which other steps use too: it is this step's from the time when
 * the walk comes to a C frame until the step has nothing more to push for it. */
struct near {
	__u64 frames, frame_bytes; /* frame[] is [frames, frames + frame_bytes) */
	__u64 values, value_bytes; /* value[] alike */
	__u64 memory;    /* what the frame that is pushed is remembered by; 0: it is not */
	__u64 key;       /* of its function, if that was remembered */
	__u32 next, pad; /* bytes of control frames that the next read takes */
	__u64 frame[FRAMES_NEAR / 8 + 8];
	__u64 value[VALUES_NEAR / 8 + 4];
};

_Static_assert(sizeof(struct near) <= FUSEE_EMIT_BYTES, "the buffer has room");

FUSEE_FN struct near *near(struct fusee_unwind *u)
{
	char *buffer = fusee_buffer(u);

	return buffer ? (void *)(buffer + FUSEE_EMIT_BYTES) : 0;
}

FUSEE_FN void begin_near(struct fusee_unwind *u)
{
	struct near *n = near(u);

	if (!n)
		return;
	n->frame_bytes = n->value_bytes = 0;
	n->next = FRAMES_FIRST;
}

/* ---- control frames ---- */

/* Reads FRAME and those behind it. 0 or -1. */
static int move_frames(struct fusee_unwind *u, __u32 unused)
{
	__u64 at = u->scratch[FRAME], most = u->scratch[END] - at;
	struct near *n = near(u);
	__u32 size;

	(void)unused;
	if (!n)
		return -1;
	size = n->next < most ? n->next : (__u32)most;
	n->next = FRAMES_NEAR;
	n->frames = at;
	n->frame_bytes = 0;
	__asm__ volatile("" : "+r"(size));
	if (size > FRAMES_NEAR)
		return -1;
	if (size < sizeof(struct control_frame) || fusee_read(u, n->frame, size, at)) {
		size = sizeof(struct control_frame); /* the next page may be missing */
		if (fusee_read(u, n->frame, sizeof(struct control_frame), at))
			return -1;
	}
	n->frame_bytes = size;
	return 0;
}
FUSEE_PART(fusee_ruby_move_frames, move_frames)

/* The control frame FRAME. NULL: it cannot be read. */
FUSEE_FN const struct control_frame *frame_at(struct fusee_unwind *u, struct near *n)
{
	__u64 i = u->scratch[FRAME] - n->frames;

	if (u->scratch[FRAME] & 7)
		return 0;
	if (i >= n->frame_bytes || n->frame_bytes - i < sizeof(struct control_frame)) {
		if (FUSEE_CALL(fusee_ruby_move_frames, u, 0))
			return 0;
		i = 0;
	}
	i /= 8;
	__asm__ volatile("" : "+r"(i));
	return (const void *)&n->frame[i & (FRAMES_NEAR / 8 - 1)];
}

/* ---- environments ---- */

/* The words before an environment pointer, and at it. */
struct environment {
	__u64 method, outer, flags; /* outer: of a block, the environment pointer around it */
};

/* Reads the environment at this address of the VM's stack and what is below it in its page: the
 * stack may begin there, and a read of missing memory takes longer than ten others. 0 or -1. */
FUSEE_FN int move_values(struct fusee_unwind *u, struct near *n, __u64 at)
{
	__u64 below = at & 4095;
	__u32 size = sizeof(struct environment);

	size += below < VALUES_NEAR - size ? (__u32)below : VALUES_NEAR - size;
	n->values = at + sizeof(struct environment) - size;
	n->value_bytes = 0;
	__asm__ volatile("" : "+r"(size));
	if (size > VALUES_NEAR || fusee_read(u, n->value, size, n->values))
		return -1;
	n->value_bytes = size;
	return 0;
}

#define STACK_NEAR (1u << 20) /* bytes below a VM's end that are taken for its stack */

FUSEE_FN int environment_at(struct fusee_unwind *u, struct near *n, struct environment *e, __u64 ep)
{
	__u64 at = ep - 16, i = at - n->values;

	if (ep & 7)
		return -1;
	if (i >= n->value_bytes || n->value_bytes - i < sizeof(*e)) {
		if (u->scratch[END] - at > STACK_NEAR)
			return AT(u, e, at); /* it is an object by now */
		if (move_values(u, n, at))
			return -1;
		i = at - n->values;
	}
	i /= 8;
	__asm__ volatile("" : "+r"(i));
	i &= VALUES_NEAR / 8 - 1;
	e->method = n->value[i];
	e->outer = n->value[i + 1];
	e->flags = n->value[i + 2];
	return 0;
}

/* ---- what is remembered ---- */

/* Bits of INSIDE, above INSIDE_BITS. */
#define COUNTED                                                                           \
	4ull /* the bits above it are valid: 1 + the number of collections, 0: nothing is \
	      * to be remembered */
#define COUNT_SHIFT 3

/* struct rb_objspace: its flags */
#define GC_MARKS 1u       /* of its mode: objects are marked, or moved */
#define GC_RUNS (1u << 5) /* during_gc */

/* Counts the collections. What cannot be read costs time only. */
static int count_collections(struct fusee_unwind *u, __u32 unused)
{
	__u64 at = u->bias + address(u, RUBY_VM), space, count;
	__u32 flags;

	(void)unused;
	u->scratch[INSIDE] = (u->scratch[INSIDE] & INSIDE_BITS) | COUNTED;
	if (!word(u, RUBY_COLLECTIONS))
		return 0;
	space = fusee_recall(u, at);
	if (!space) {
		if (AT(u, &space, at) || AT(u, &space, space + word(u, RUBY_VM_SPACE)) || !space)
			return 0;
		fusee_remember(u, at, space);
	}
	if (AT(u, &flags, space + word(u, RUBY_SPACE_FLAGS)) || flags & (GC_RUNS | GC_MARKS) ||
	    AT(u, &count, space + word(u, RUBY_COLLECTIONS)))
		return 0;
	u->scratch[INSIDE] |= (count + 1) << COUNT_SHIFT;
	return 0;
}
FUSEE_PART(fusee_ruby_count_collections, count_collections)

/* Looks for the function with these addresses at this place. 1: n->key is its key. */
FUSEE_FN int recall(struct fusee_unwind *u, struct near *n, __u64 object, __u64 method, __u64 place)
{
	n->key = n->memory = 0;
	if (!(u->scratch[INSIDE] & COUNTED))
		FUSEE_CALL(fusee_ruby_count_collections, u, 0);
	if (!(u->scratch[INSIDE] >> COUNT_SHIFT))
		return 0;
	n->memory = fusee_mix(fusee_mix(u->bias, u->scratch[INSIDE] >> COUNT_SHIFT), object);
	n->memory = fusee_mix(fusee_mix(n->memory, method), place);
	n->key = fusee_recall(u, n->memory);
	return n->key != 0;
}

#endif
