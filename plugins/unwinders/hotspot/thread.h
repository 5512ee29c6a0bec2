/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The name that Java gives a thread. The frame of the stub that calls Java has the address of a
 * JavaCallWrapper, whose first word is the JavaThread; this has the object java.lang.Thread. The
 * object leads back to the JavaThread, so another object is no thread's. A collector that stops the
 * threads moves objects after it has changed their addresses; meanwhile nothing is read. A part of
 * the step: hotspot.bpf.c includes it.
 */
#ifndef HOTSPOT_THREAD_H
#define HOTSPOT_THREAD_H

#include "chunk.h"
#include "state.h"

#define CALL_WRAPPER 48 /* bytes below the frame pointer of the stub that calls Java */

/* May objects be where their addresses do not lead to? */
FUSEE_FN int is_moving(struct fusee_unwind *u)
{
	__u8 is = 1;

	return AT(u, &is, address(u, HOTSPOT_IS_MOVING)) || is;
}

/* The address of the object java.lang.Thread of the thread whose frame of the stub this is. 0: it
 * is not known. */
FUSEE_FN __u64 thread_object(struct fusee_unwind *u)
{
	__u64 wrapper, thread, object, back;

	if (u->flags & FUSEE_FP_LOST || u->fp & 7 || AT(u, &wrapper, u->fp - CALL_WRAPPER) ||
	    wrapper & 7 || wrapper - u->fp > FARTHEST || AT(u, &thread, wrapper) ||
	    AT(u, &object, thread + word(u, HOTSPOT_THREAD_OBJECT)) || !object)
		return 0;
	if (word(u, HOTSPOT_THREAD_HANDLE) && AT(u, &object, object))
		return 0;
	if (AT(u, &back, object + word(u, HOTSPOT_THREAD_EETOP)) || back != thread)
		return 0;
	return object;
}

/* Copies the bytes of a String's text to `to`, as words that end with 0. Their number; 0: there are
 * none, or they cannot be read. */
FUSEE_FN __u32 copy_text(struct fusee_unwind *u, __u64 string, __u64 *to, __u32 *wide)
{
	int narrow = word(u, HOTSPOT_NARROW) != 0;
	__u32 coder_at = word(u, HOTSPOT_STRING_CODER), n;
	__u8 coder = 1;
	__u64 value;

	if (read_object(u, string + word(u, HOTSPOT_STRING_VALUE), narrow, &value) || !value ||
	    (coder_at && AT(u, &coder, string + coder_at)) ||
	    AT(u, &n, value + word(u, HOTSPOT_TEXT_LENGTH)))
		return 0;
	if (!coder_at) /* the array has characters */
		n = n < HOTSPOT_THREAD_BYTES ? 2 * n : HOTSPOT_THREAD_BYTES;
	n = n < HOTSPOT_THREAD_BYTES ? n : HOTSPOT_THREAD_BYTES;
	*wide = coder != 0;
	__asm__ volatile("" : "+r"(n));
	n &= 255;
	if (!n || n > HOTSPOT_THREAD_BYTES)
		return 0;
	to[n / 8 & 31] = 0;
	return fusee_read(u, to, n, value + word(u, HOTSPOT_TEXT_BYTES)) ? 0 : n;
}

FUSEE_FN __u64 name_key(const __u64 *text, __u32 n, __u32 wide)
{
	__u64 key = fusee_mix(0x746e, (__u64)n << 1 | wide);

	for (__u32 i = 0; i <= HOTSPOT_THREAD_BYTES / 8; i++) {
		if (8 * i >= n)
			break;
		key = fusee_mix(key, text[i]);
	}
	return key;
}

/* Pushes the thread's name, which is emitted if it is new. 1; 0: it has none, or it is not known.
 */
static int push_thread(struct fusee_unwind *u, __u32 unused)
{
	struct hotspot_thread *head = fusee_buffer(u);
	__u64 *text = (void *)(head + 1), object, name, key;
	__u32 n;

	(void)unused;
	if (!head || is_moving(u))
		return 0;
	object = thread_object(u);
	if (!object ||
	    read_object(u, object + word(u, HOTSPOT_THREAD_NAME), word(u, HOTSPOT_NARROW) != 0,
			&name) ||
	    !name)
		return 0;
	head->pad = 0;
	n = copy_text(u, name, text, &head->wide);
	if (!n || is_moving(u))
		return 0;
	key = name_key(text, n, head->wide);
	if (!fusee_emitted(u, HOTSPOT_THREAD, key) &&
	    fusee_emit(u, HOTSPOT_THREAD, key, sizeof(*head) + n))
		return 0;
	fusee_push4(u, key, HOTSPOT_IS_THREAD, 0, 0, FUSEE_PUSH_THREAD);
	return 1;
}
FUSEE_PART(fusee_hotspot_push_thread, push_thread)

#endif
