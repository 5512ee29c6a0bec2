/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames whose code was stepped before. A read of the target takes longer than all else of a frame.
 * So what was found for a return address is in a note, and one read tells whether the same method
 * is still there: its block has its length, its blob the number of the compilation, which no other
 * has. In one walk that is read once for an address, as the thread does not run meanwhile, and no
 * code is freed that it will return to. A part of the step: hotspot.bpf.c includes it.
 */
#ifndef HOTSPOT_KNOWN_H
#define HOTSPOT_KNOWN_H

#include "blob.h"
#include "chunk.h"
#include "classes.h"
#include "emit.h"
#include "state.h"

#define BELOW_FP 64

/* Is the sp below all words of the frame at fp? While a frame is made, rbp is set first, and the
 * words below the sp are still those of an earlier frame. */
FUSEE_FN int is_made(struct fusee_unwind *u)
{
	return u->fp - u->sp >= BELOW_FP - (address(u, HOTSPOT_ONE_HEAP) ? 8 : 0);
}

FUSEE_FN int may_be_interpreted(struct fusee_unwind *u)
{
	return !(u->flags & FUSEE_FP_LOST || u->fp & 7) && u->fp - u->sp <= FARTHEST && is_made(u);
}

FUSEE_FN int leads_to_caller(const struct fusee_unwind *u, const struct interpreted *f)
{
	return !(f->sender_sp & 7) && f->sender_sp >= u->fp + 8 &&
	       f->sender_sp - u->fp <= FARTHEST && is_java_code(u, f->pc);
}

/* Words of a note of a return address in a compiled method. */
enum {
	KNOWN_BLOCK,   /* its address, with IS_NATIVE_CODE; 0: it is in the interpreter */
	KNOWN_NAME,    /* address of the blob's name */
	KNOWN_ID,      /* number of the compilation; above it: the block's length */
	KNOWN_KEY,     /* that the frame is pushed with */
	KNOWN_PLACE,   /* offset in the code; above it: bytes of the frame */
	KNOWN_CHECKED, /* time of the walk in which this was last read */
};

#define IS_NATIVE_CODE 1ull /* a native method's */

/* Words of a note of an interpreted method: what a Method is, several reads would tell. See
 * classes.h for how long they hold. */
enum {
	METHOD_CODE, /* address of its bytecodes */
	METHOD_SIZE, /* their bytes */
	METHOD_KEY,  /* that a frame is pushed with */
};

FUSEE_FN __u64 known_key(const struct fusee_unwind *u)
{
	return fusee_mix(0x6b6e6f776e, u->pc);
}

/* Notes the frame of a compiled method, which was pushed, and whose place was emitted. It was
 * called something. */
FUSEE_FN void note_known(struct fusee_unwind *u, const struct near *n, __u32 id, __u32 offset)
{
	__u64 block = u->scratch[BLOB] - word(u, HOTSPOT_BLOCK_SIZE);
	struct fusee_note *k;
	__u32 length, size;

	if (is_exact(u) || is_in_chunk(u) || u->scratch[BLOB] == 0 || n->header_at != block ||
	    block & IS_NATIVE_CODE || BLOB_AT(u, n, &size, word(u, HOTSPOT_BLOB_FRAME_SIZE)) ||
	    size < 2 || size >= MOST_FRAME / 8 ||
	    read_near(u, n, &length, sizeof(length), block + word(u, HOTSPOT_BLOCK_LENGTH)))
		return;
	k = fusee_make_note(u, known_key(u));
	if (!k)
		return;
	k->word[KNOWN_BLOCK] = block | (u->scratch[NAME8] == IS_NATIVE ? IS_NATIVE_CODE : 0);
	k->word[KNOWN_NAME] = u->scratch[NAME];
	k->word[KNOWN_ID] = id | (__u64)length << 32;
	k->word[KNOWN_KEY] = fusee_mix(fusee_mix(0x6e6d, u->scratch[BLOB]), id);
	k->word[KNOWN_PLACE] = offset | (__u64)size * 8 << 32;
	k->word[KNOWN_CHECKED] = u->time_ns;
}

FUSEE_FN __u64 method_key(__u64 method)
{
	return fusee_mix(0x6d6574686f64, method);
}

/* Notes that this return address is in the interpreter. */
FUSEE_FN void note_interpreter(struct fusee_unwind *u)
{
	struct fusee_note *k;

	if (is_exact(u) || u->scratch[NAME8] != IS_INTERPRETER)
		return;
	k = fusee_make_note(u, known_key(u));
	if (k)
		k->word[KNOWN_BLOCK] = 0;
}

/* Notes METHOD, whose constants are read, and which was named. */
FUSEE_FN void note_method(struct fusee_unwind *u, struct near *n)
{
	struct fusee_note *k;
	unsigned short size;

	if (CONSTANT(u, n, &size, word(u, HOTSPOT_CONST_CODE_SIZE)))
		return;
	k = make_holding_note(u, n, method_key(u->scratch[METHOD]));
	if (!k)
		return;
	k->word[METHOD_CODE] = n->constants + word(u, HOTSPOT_CONST_SIZE);
	k->word[METHOD_SIZE] = size;
	k->word[METHOD_KEY] = u->scratch[KEY];
}

/* Is this method still there? */
static int is_there(struct fusee_unwind *u, __u32 unused)
{
	struct fusee_note *k = fusee_find_note(u, known_key(u));
	struct near *n = near(u);
	__u64 block, name;
	__u32 length, id;
	__u8 used;

	(void)unused;
	if (!k || !n)
		return 0;
	block = k->word[KNOWN_BLOCK] & ~IS_NATIVE_CODE;
	if (read_header(u, n, block) ||
	    read_near(u, n, &length, sizeof(length), block + word(u, HOTSPOT_BLOCK_LENGTH)) ||
	    read_near(u, n, &used, sizeof(used), block + word(u, HOTSPOT_BLOCK_USED)) || !used)
		return 0;
	block += word(u, HOTSPOT_BLOCK_SIZE);
	if (read_near(u, n, &name, sizeof(name), block + word(u, HOTSPOT_BLOB_NAME)) ||
	    read_near(u, n, &id, sizeof(id), block + word(u, HOTSPOT_NMETHOD_COMPILE_ID)) ||
	    name != k->word[KNOWN_NAME] || (id | (__u64)length << 32) != k->word[KNOWN_ID])
		return 0;
	k->word[KNOWN_CHECKED] = u->time_ns;
	return 1;
}
FUSEE_PART(fusee_hotspot_is_there, is_there)

/* As known(), of a frame of the interpreter. */
static int known_interpreted(struct fusee_unwind *u, __u32 unused)
{
	__u64 bcp, sender, w[sizeof(struct interpreted) / 8];
	const struct interpreted *f = (void *)w;
	struct near *n = near(u);
	struct fusee_note *k;

	(void)unused;
	if (!n || !may_be_interpreted(u) ||
	    fusee_read_stack(u, w, sizeof(w) / 8, u->fp - BELOW_FP) || !leads_to_caller(u, f))
		return -1;
	k = holding_note(u, n, method_key(f->method));
	if (!k)
		return -1;
	bcp = address(u, HOTSPOT_ONE_HEAP) ? f->locals : f->bcp;
	bcp -= k->word[METHOD_CODE];
	if (!k->word[METHOD_SIZE]) /* a native method */
		bcp = HOTSPOT_NO_BCI;
	else if (bcp >= k->word[METHOD_SIZE])
		return -1;
	fusee_push(u, k->word[METHOD_KEY], bcp);
	u->scratch[NAME] = KNOWN_INTERPRETER;
	u->scratch[NAME8] = IS_INTERPRETER;
	sender = f->sender_sp == u->fp + 8 ? u->fp + 16 : f->sender_sp;
	u->fp = f->fp;
	return to_caller(u, f->pc, sender);
}
FUSEE_PART(fusee_hotspot_known_interpreted, known_interpreted)

/* Steps from a frame that has called something, if a note has its code: pushes it, FUSEE_NEXT. -1:
 * it is to be stepped without; nothing has changed. */
static int known(struct fusee_unwind *u, __u32 unused)
{
	struct fusee_note *k = fusee_find_note(u, known_key(u));
	__u64 saved[2], size;

	(void)unused;
	if (!k)
		return -1;
	if (!k->word[KNOWN_BLOCK])
		return FUSEE_CALL(fusee_hotspot_known_interpreted, u, 0);
	size = k->word[KNOWN_PLACE] >> 32;
	if (AT(u, &saved, u->sp + size - 16) || !is_java_code(u, saved[1]))
		return -1;
	if (k->word[KNOWN_CHECKED] != u->time_ns && FUSEE_CALL(fusee_hotspot_is_there, u, 0) != 1)
		return -1;
	fusee_push(u, k->word[KNOWN_KEY], HOTSPOT_IS_PLACE | (__u32)k->word[KNOWN_PLACE]);
	u->scratch[BLOB] = 0; /* nothing else is to be read of it */
	u->scratch[NAME] = k->word[KNOWN_NAME];
	u->scratch[NAME8] = k->word[KNOWN_BLOCK] & IS_NATIVE_CODE ? IS_NATIVE : IS_NMETHOD;
	u->fp = saved[0];
	u->flags &= ~(__u32)FUSEE_FP_LOST;
	return to_caller(u, saved[1], u->sp + size);
}
FUSEE_PART(fusee_hotspot_known, known)

#endif
