/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The key of a code object, and how long it is known. A part of the step: python.bpf.c includes it.
 */
#ifndef PYTHON_KNOWN_H
#define PYTHON_KNOWN_H

/*
 * Sets the lower half of COUNT to the number of code objects that this runtime has made, or
 * from 3.14 on freed; 0: not known. The upper half distinguishes the runtime, and is not 0. As long
 * as COUNT is unchanged, a code object is the same as before at its address. From 3.13 on each
 * interpreter has a counter, so it is used only if there is one interpreter.
 */
static int count_codes(struct fusee_unwind *u, __u32 unused)
{
	__u64 interpreters[2]; /* head, main */
	struct near *n = near(u);
	__u32 count;
	__u64 at;

	(void)unused;
	u->scratch[COUNT] = (u->scratch[BASE] | 1) << 32;
	if (!n)
		return -1;
	at = n->table[PYTHON_COUNTER] + ((__u64)n->table[PYTHON_COUNTER_HIGH] << 32);
	if (!at)
		return 0;
	if (n->table[PYTHON_FAMILY] == PYTHON_SHIMS)
		at += u->bias;
	else if (AT(u, &interpreters, u->scratch[BASE] + n->table[PYTHON_INTERPRETERS]) ||
		 interpreters[0] != interpreters[1])
		return 0;
	else
		at += interpreters[0];
	if (!AT(u, &count, at))
		u->scratch[COUNT] |= count;
	return 0;
}
FUSEE_PART(fusee_python_count_codes, count_codes)

/* flags: enum fusee_push_flags. */
FUSEE_FN void push_key(struct fusee_unwind *u, __u64 key, __u64 at, __u32 flags)
{
	if (flags)
		fusee_push4(u, key, at, 0, 0, flags);
	else
		fusee_push(u, key, at);
}

/* The key under which a code object's key is remembered; 0: it is not. */
FUSEE_FN __u64 memory_of(struct fusee_unwind *u, __u64 code)
{
	if (!u->scratch[COUNT])
		FUSEE_CALL(fusee_python_count_codes, u, 0);
	return (__u32)u->scratch[COUNT] ? fusee_mix(u->scratch[COUNT], code) : 0;
}

/* Words of a note of a code object. In one walk the thread does not run, so the code objects of its
 * frames are not freed. */
enum { NOTED_KEY, NOTED_AT /* time of the walk */ };

FUSEE_FN __u64 note_key(__u64 code)
{
	return fusee_mix(0x636f6465, code);
}

/* The key of a code object that this walk has read; 0: it has not. */
FUSEE_FN __u64 noted(struct fusee_unwind *u, __u64 code)
{
	const struct fusee_note *k = fusee_find_note(u, note_key(code));

	return k && k->word[NOTED_AT] == u->time_ns ? k->word[NOTED_KEY] : 0;
}

/* Reads what distinguishes a code object, and pushes its frame. 0, or -1: it cannot be read. */
FUSEE_FN int push_code(struct fusee_unwind *u, struct near *n, __u64 code, __u32 at, __u32 flags)
{
	const __u64 *c = n->code;

	if (code & 7 || AT(u, &n->code, code + n->table[PYTHON_CODE]))
		return -1;
	/* the trampoline that calls __init__() has a static code object, whose texts are equal: it
	 * is not shown */
	if (c[PYTHON_NEW_FILENAME] != c[PYTHON_NEW_FILENAME + 2])
		push_key(u,
			 key_of(code, c[PYTHON_NEW_FILENAME], c[PYTHON_NEW_FILENAME + 2],
				c[PYTHON_NEW_FILENAME + 3],
				n->table[PYTHON_FIRST_LINE] == 64 ? c[1] : c[0] >> 32),
			 at, flags);
	return 0;
}

#endif
