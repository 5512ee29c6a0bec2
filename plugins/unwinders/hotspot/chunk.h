/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames of a virtual thread in Java's heap. When a virtual thread goes on, the JVM copies its
 * innermost frames to the stack of its carrier; the outermost of these returns to a stub that
 * copies the next. The others are in objects, StackChunk, as they were on a stack: of compiled
 * methods with the same words, of interpreted methods with a frame pointer and the caller's sp that
 * are counted from where they are. Above the frames on the stack is the JVM's ContinuationEntry,
 * which has the continuation, and above that the frame that has called the virtual thread.
 *
 * The core calls the step again for each of them, and the place on the carrier's stack stays. A
 * part of the step: hotspot.bpf.c includes it.
 */
#ifndef HOTSPOT_CHUNK_H
#define HOTSPOT_CHUNK_H

#include "state.h"

#define MOST_CHUNK (1 << 20) /* words of a chunk's stack */
#define CHUNK_EDGE 16        /* bytes below a frame that are its callee's: return address, link */

/* While a chunk is walked scratch has its state between two calls, in words that are otherwise of
 * one frame. */
enum {
	IN_CHUNK = NAME,   /* CHUNK_MARK, which is no address */
	CHUNK = BLOB,      /* its address */
	CHUNK_END = NAME8, /* of its stack */
	CHUNK_PC = METHOD,
	CHUNK_SP = KEY,
	CHUNK_LINK = ORIGINAL, /* the address of the word that the frame's rbp was saved in */
};
#define CHUNK_MARK 0x6b6e756863ull

FUSEE_FN int is_in_chunk(const struct fusee_unwind *u)
{
	return u->scratch[IN_CHUNK] == CHUNK_MARK;
}

/* The object at a field, of 4 bytes or 8. */
FUSEE_FN int read_object(struct fusee_unwind *u, __u64 at, int narrow, __u64 *object)
{
	__u32 v;

	if (!narrow)
		return AT(u, object, at);
	if (AT(u, &v, at))
		return -1;
	*object = v ? address(u, HOTSPOT_OOP_BASE) + ((__u64)v << (word(u, HOTSPOT_OOP_SHIFT) & 15))
		    : 0;
	return 0;
}

/* Is this a StackChunk? Its header says so. */
FUSEE_FN int is_chunk(struct fusee_unwind *u, __u64 chunk)
{
	__u32 class;

	return chunk && !(chunk & 7) && !AT(u, &class, chunk + 8) &&
	       class == word(u, HOTSPOT_CHUNK_CLASS);
}

/* CHUNK, an object, becomes the chunk that the field at this offset has. 1; 0: it has none. */
static int follow(struct fusee_unwind *u, __u32 offset)
{
	__u64 field = u->scratch[CHUNK] + offset, chunk;

	if ((read_object(u, field, 1, &chunk) || !is_chunk(u, chunk)) &&
	    (read_object(u, field, 0, &chunk) || !is_chunk(u, chunk)))
		return 0;
	u->scratch[CHUNK] = chunk;
	return 1;
}
FUSEE_PART(fusee_hotspot_follow, follow)

/* The state becomes that of the chunk's innermost frame. 1; 0: it has none; -1: it cannot be. */
static int enter_chunk(struct fusee_unwind *u, __u32 unused)
{
	__u64 chunk = u->scratch[CHUNK];
	__u64 stack = chunk + word(u, HOTSPOT_CHUNK_STACK), pc;
	__u32 bottom_at = word(u, HOTSPOT_CHUNK_BOTTOM);
	__s32 sp, size, bottom;

	(void)unused;

	if (AT(u, &sp, chunk + word(u, HOTSPOT_CHUNK_SP)) ||
	    AT(u, &size, chunk + word(u, HOTSPOT_CHUNK_SIZE)) ||
	    AT(u, &bottom, chunk + (bottom_at ? bottom_at : word(u, HOTSPOT_CHUNK_ARGUMENTS))))
		return -1;
	if (!bottom_at)
		bottom = size - bottom;
	if (sp < 0 || size < 0 || size > MOST_CHUNK || bottom < 0 || bottom > size)
		return -1;
	if (sp >= bottom)
		return 0;
	if (AT(u, &pc, stack + 8ull * (__u32)sp - 8))
		return -1;
	u->scratch[CHUNK_END] = stack + 8ull * (__u32)bottom;
	u->scratch[CHUNK_PC] = pc;
	u->scratch[CHUNK_SP] = stack + 8ull * (__u32)sp;
	u->scratch[CHUNK_LINK] = u->scratch[CHUNK_SP] - 16;
	return 1;
}
FUSEE_PART(fusee_hotspot_enter_chunk, enter_chunk)

/* From this chunk on, the first that has frames. 1: there is one; 0: the last has none; -1. */
static int find_frames(struct fusee_unwind *u, __u32 unused)
{
	int r = 0;

	(void)unused;
	for (int i = 0; i < 4; i++) {
		r = FUSEE_CALL(fusee_hotspot_enter_chunk, u, 0);
		if (r || FUSEE_CALL(fusee_hotspot_follow, u, word(u, HOTSPOT_CHUNK_PARENT)) != 1)
			return r;
	}
	return -1;
}
FUSEE_PART(fusee_hotspot_find_frames, find_frames)

#define LEAST_ENTRY 48 /* bytes of a ContinuationEntry: so many, or 8 more, by release */
#define MOST_ENTRY 56
#define MOST_ARGUMENTS 16 /* words between the virtual thread's frames and the entry */
#define MOST_COPIED 128   /* words that the stub may have made room for */

/* Is the entry below the frame pointer that of a continuation with a chunk? Then CHUNK is that. 1
 * or 0. */
static int is_entry(struct fusee_unwind *u, __u32 unused)
{
	(void)unused;
	if (!word(u, HOTSPOT_CHUNK_STACK) || u->fp & 7)
		return 0;
	for (int size = MOST_ENTRY; size >= LEAST_ENTRY; size -= 8)
		if (!AT(u, &u->scratch[CHUNK], u->fp - (__u32)size + 8) &&
		    FUSEE_CALL(fusee_hotspot_follow, u, word(u, HOTSPOT_CONTINUATION_TAIL)) == 1)
			return 1;
	return 0;
}
FUSEE_PART(fusee_hotspot_is_entry, is_entry)

/* At the stub: the frame pointer becomes that of the frame that runs the virtual thread. Frames
 * that were copied back have saved that of the frame which ran it then, on any carrier's stack. No
 * word of the entry is an address of code, and right above it is that frame; below it may be words
 * of earlier frames. most: words between the sp and the entry. 1; 0: not found. */
static int find_entry(struct fusee_unwind *u, __u32 most)
{
	__u64 at = u->sp + LEAST_ENTRY, fp = u->fp, pc;

	for (__u32 i = 0; i < MOST_COPIED; i++, at += 8) {
		if (i >= most || AT(u, &pc, at + 8))
			break;
		if (!is_java_code(u, pc))
			continue;
		u->fp = at;
		if (!word(u, HOTSPOT_CHUNK_STACK) ||
		    FUSEE_CALL(fusee_hotspot_is_entry, u, 0) == 1) {
			u->flags &= ~(__u32)FUSEE_FP_LOST;
			return 1;
		}
	}
	u->fp = fp;
	return 0;
}
FUSEE_PART(fusee_hotspot_find_entry, find_entry)

FUSEE_FN __u64 mark_of(__u64 v)
{
	return fusee_mix(0x6d61726b, v) << MARK_SHIFT & MARK_BITS;
}

/* The first frame in the heap: is it on the stack, too? */
FUSEE_FN int is_copied(struct fusee_unwind *u)
{
	__u64 v = u->scratch[CHUNK_PC], up;

	if (!(u->scratch[HI] & MARKED))
		return 0;
	if (u->scratch[HI] & BY_METHOD &&
	    (AT(u, &up, u->scratch[CHUNK_LINK]) || up >= FARTHEST / 8 ||
	     AT(u, &v, u->scratch[CHUNK_LINK] + 8 * up - 24)))
		return 0; /* it is no interpreted frame */
	return (u->scratch[HI] & MARK_BITS) == mark_of(v);
}

/* At the stub, with the frame pointer that find_entry() has set: 1: the state is that of the
 * innermost frame in the heap. */
static int begin_chunk(struct fusee_unwind *u, __u32 unused)
{
	__u64 name = u->scratch[NAME8];

	(void)unused;
	if (u->scratch[HI] & UNSURE || FUSEE_CALL(fusee_hotspot_is_entry, u, 0) != 1 ||
	    FUSEE_CALL(fusee_hotspot_find_frames, u, 0) != 1)
		return 0;
	if (is_copied(u)) {
		u->scratch[NAME8] = name;
		return 0;
	}
	u->scratch[IN_CHUNK] = CHUNK_MARK;
	return 1;
}
FUSEE_PART(fusee_hotspot_begin_chunk, begin_chunk)

/* The frame that is stepped becomes that of the chunk. 0 or -1. */
static int resume_chunk(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);

	(void)unused;
	if (!n)
		return -1;
	n->pc = u->pc;
	n->sp = u->sp;
	n->chunk = u->scratch[CHUNK];
	n->end = u->scratch[CHUNK_END];
	n->link = u->scratch[CHUNK_LINK];
	u->pc = u->scratch[CHUNK_PC];
	u->sp = u->scratch[CHUNK_SP];
	u->scratch[IN_CHUNK] = 0;
	return 0;
}
FUSEE_PART(fusee_hotspot_resume_chunk, resume_chunk)

/* Back on the carrier's stack: to the frame that has called the virtual thread's. */
FUSEE_FN int leave_chunk(struct fusee_unwind *u, struct near *n)
{
	u->pc = n->pc;
	u->sp = n->sp;
	u->scratch[IN_CHUNK] = 0;
	return to_caller_of_frame(u, u->fp + 16);
}

/* The caller of the chunk's frame is at this pc, and so on. */
FUSEE_FN int to_caller_in_chunk(struct fusee_unwind *u, struct near *n, __u64 pc, __u64 sp,
				__u64 link)
{
	int r = 1;

	u->scratch[CHUNK] = n->chunk;
	if (sp + CHUNK_EDGE >= n->end) {
		if (FUSEE_CALL(fusee_hotspot_follow, u, word(u, HOTSPOT_CHUNK_PARENT)) != 1)
			return leave_chunk(u, n);
		r = FUSEE_CALL(fusee_hotspot_find_frames, u, 0);
		if (!r)
			return leave_chunk(u, n);
	} else {
		u->scratch[CHUNK_END] = n->end;
		u->scratch[CHUNK_PC] = pc;
		u->scratch[CHUNK_SP] = sp;
		u->scratch[CHUNK_LINK] = link;
	}
	u->pc = n->pc;
	u->sp = n->sp;
	if (r < 0)
		return fusee_stop(u, HOTSPOT_NO_FRAME);
	u->scratch[IN_CHUNK] = CHUNK_MARK;
	return FUSEE_AGAIN;
}

/* From a compiled method's frame in the chunk. */
static int leave_sized_in_chunk(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 pc, sp = u->sp;
	__u32 size;

	(void)unused;
	if (!n)
		return fusee_stop(u, HOTSPOT_UNREADABLE);
	if (AT(u, &size, u->scratch[BLOB] + word(u, HOTSPOT_BLOB_FRAME_SIZE)) || size < 2 ||
	    size > MOST_CHUNK || sp + 8ull * size > n->end || AT(u, &pc, sp + 8ull * size - 8)) {
		u->pc = n->pc;
		u->sp = n->sp;
		return fusee_stop(u, HOTSPOT_NO_FRAME);
	}
	sp += 8ull * size;
	return to_caller_in_chunk(u, n, pc, sp, sp - 16);
}
FUSEE_PART(fusee_hotspot_leave_sized_in_chunk, leave_sized_in_chunk)

#endif
