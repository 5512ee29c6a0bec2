/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What all parts of the step read and keep. */
#ifndef V8_STATE_H
#define V8_STATE_H

#include <fusee/unwinder.bpf.h>

#include "words.h"

/* u->scratch: of the frame that is stepped */
enum {
	SHARED, /* a SharedFunctionInfo that is to be named */
	KEY,    /* of it */
	SCRIPT, /* of it: the object, and its key; 0: it has none */
	SCRIPT_KEY,
	TEXT, /* a text that is to be copied */
	BYTECODE,
	CODE, /* compiled code, and its key */
	CODE_KEY,
};

/* Every pointer to an object has this bit, and numbers have not: they are in the upper half. */
#define TAG 1ull
#define TAG_MASK 3ull
#define NUMBER_SHIFT 32

#define FARTHEST (1ull << 21) /* the most bytes of a frame */

#define AT(u, what, addr) fusee_read(u, what, sizeof(*(what)), addr)

/* Where the characters of a text are. */
struct flat {
	__u64 text;   /* the object that is looked at */
	__u64 at;     /* address of the first character */
	__u32 length; /* characters */
	__u32 wide;   /* 1: of two bytes */
};

#define MOST_RESTS 8u /* a power of two: texts that are joined to one before them */

/* Behind the bytes of an emission in fusee_buffer(). */
struct near {
	__u64 shared[8]; /* the first words of SHARED */
	struct flat flat;
	__u64 rest[MOST_RESTS]; /* texts that follow that of flat, the last is the next */
	__u64 rests;
	struct v8_text text; /* that put_text() has copied */
	__u64 id;            /* of SCRIPT: its number, which no other script of the process gets */
	__u64 source;        /* of SCRIPT, as in struct v8_script */
	struct flat characters;
	__u32 line_offset;
	__u32 forgotten;
	__u64 instruction; /* whose code is looked for */
	/* of CODE, as in struct v8_code */
	__u32 functions, places;
	__u64 literals, inlined; /* the objects */
	__u32 entry, entries;    /* of its data for deoptimization: the exits of calls */
	__u64 key[V8_MOST_INLINED];
	__u64 script, script_at; /* whose number `id` is, and time of the walk that has read it */
	/* of known.h */
	__u64 function;    /* in the frame's slot */
	__u64 words[8];    /* the first of an object */
	__u64 code, start; /* Code, and the address of its instructions */
	__u64 state;       /* of it */
};

FUSEE_FN struct near *near(struct fusee_unwind *u)
{
	char *buffer = fusee_buffer(u);

	return buffer ? (void *)(buffer + FUSEE_EMIT_BYTES) : 0;
}

/* The value, of which the verifier knows nothing any more. */
FUSEE_FN __u32 forget(struct near *n, __u32 value)
{
	n->forgotten = value;
	__asm__ volatile("" : : : "memory");
	return n->forgotten;
}

FUSEE_FN __u32 word(struct fusee_unwind *u, __u32 i)
{
	__u32 w;

	return fusee_slab32(u, i, &w) ? 0 : w;
}

FUSEE_FN int is_object(__u64 value)
{
	return (value & TAG_MASK) == TAG;
}

/* Address of a field. */
FUSEE_FN __u64 field(__u64 object, __u32 offset)
{
	return object - TAG + offset;
}

/* The instance type of an object, -1: it has none or cannot be read. If the garbage collector has
 * moved the object, *object becomes where it is: that is in place of its map then. */
static int type_of(struct fusee_unwind *u, __u64 *object)
{
	unsigned short type;
	__u64 map;

	if (!is_object(*object) || AT(u, &map, field(*object, 0)))
		return -1;
	if (!(map & TAG_MASK)) {
		*object = map + TAG;
		if (AT(u, &map, field(*object, 0)))
			return -1;
	}
	if (!is_object(map) || AT(u, &type, field(map, word(u, V8_MAP_TYPE))))
		return -1;
	return type;
}

#endif
