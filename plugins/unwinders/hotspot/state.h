/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What all parts of the step read and keep. */
#ifndef HOTSPOT_STATE_H
#define HOTSPOT_STATE_H

#include <fusee/unwinder.bpf.h>

#include "words.h"

/* u->scratch: of the frame that is stepped, but for CALL_STUB */
enum {
	BLOB, /* address of its CodeBlob */
	NAME, /* of the blob: address of the text, and its first 8 bytes */
	NAME8,
	METHOD, /* a Method that is to be named; then its key */
	KEY,
	LO,       /* the heaps of code are in [LO, HI) */
	HI,       /* with flags and a mark, which stay until the walk ends */
	ORIGINAL, /* pc of a frame whose return address was replaced */
};

/* The thread may be moving frames between its stack and Java's heap: they may be in both. */
#define UNSURE (1ull << 63)

/* The thread's name was looked for. */
#define SAID (1ull << 62)

/* How to tell whether the thread has copied its frames to the heap already: where the first frame
 * in the heap is executed, or with BY_METHOD its interpreted method, is what these bits have. */
#define MARKED (1ull << 61)
#define BY_METHOD (1ull << 60)
#define MARK_SHIFT 48
#define MARK_BITS (0xfffull << MARK_SHIFT)

/* A stub that replaces a compiled frame by interpreted frames is on the stack. */
#define REPLACES (1ull << 47)

#define HI_FLAGS (UNSURE | SAID | MARKED | BY_METHOD | MARK_BITS | REPLACES)

#define MOST_FRAME (1u << 20)

#define FARTHEST (1ull << 20) /* bytes of one frame, at most */

#define AT(u, what, addr) fusee_read(u, what, sizeof(*(what)), addr)

/* The first 8 bytes of a name, as a word. */
#define TEXT8(a, b, c, d, e, f, g, h)                                                            \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

/* Behind the bytes of an emission in fusee_buffer(). */
#define CODE_BEFORE 16
#define CODE_BYTES 64

/* Bytes of a block of code that are read at once: its header, and that of its blob. */
#define HEADER_BYTES 328u

/* Bytes of a ConstMethod, and of a Symbol, that are read at once. */
#define CONSTANTS_BYTES 64u
#define SYMBOL_BYTES 64u

/* What was inlined at a place, or the compiled method itself. */
struct scope {
	__u32 outer; /* where the description begins of the method that it was inlined into */
	__u32 bci;
	__u64 method;
};

/* The words of an interpreted frame from its lowest address on, as frame_x86.hpp of JDK 9 and later
 * has them. JDK 8 has no mirror, so its bcp is where the others have locals. */
struct interpreted {
	__u64 bcp, locals, cache, data, mirror, method, last_sp, sender_sp, fp, pc;
};
/* What the verifier would count as stack: on kernels before 6.13 nested functions have 512 bytes.
 */
struct near {
	__u8 code[128]; /* CODE_BYTES around pc, from pc - CODE_BEFORE on */
	__u8 packed[16];
	__u32 numbers, digits;              /* of a table of lines */
	__u32 forgotten[2];                 /* see forget() */
	__u64 pc, sp, chunk, end, link;     /* see chunk.h */
	struct scope found;                 /* by read_scope() */
	struct interpreted frame;           /* see read_words() */
	__u64 constants, pool, name;        /* of METHOD */
	__u64 fields[CONSTANTS_BYTES / 8];  /* what is at `constants` */
	__u64 symbol[SYMBOL_BYTES / 8 + 3]; /* see mix_name() */
	__u64 generation;                   /* see classes.h */
	__u64 header_at;                    /* see blob.h */
	__u64 header[HEADER_BYTES / 8];
	__u32 header_bytes, nfields; /* that were read */
	struct hotspot_scope scope[HOTSPOT_SCOPES];
};

FUSEE_FN struct near *near(struct fusee_unwind *u)
{
	char *buffer = fusee_buffer(u);

	return buffer ? (void *)(buffer + FUSEE_EMIT_BYTES) : 0;
}

/* The value, of which the verifier knows nothing any more. It follows each value that a number can
 * have on any path through a loop, which are too many. */
FUSEE_FN __u32 forget(struct near *n, int slot, __u32 value)
{
	n->forgotten[slot] = value;
	__asm__ volatile("" : : : "memory");
	return n->forgotten[slot];
}

FUSEE_FN __u32 word(struct fusee_unwind *u, __u32 i)
{
	__u32 w;

	return fusee_process_word(u, i, &w) ? 0 : w;
}

FUSEE_FN __u64 address(struct fusee_unwind *u, __u32 i)
{
	return word(u, i) | (__u64)word(u, i + 1) << 32;
}

/* Copies the number of 1, 2, 4 or 8 bytes at this offset of `size` bytes, to which it is aligned. 0
 * or -1. */
FUSEE_FN int pick(const void *bytes, __u32 size, void *to, __u32 len, __u64 from)
{
	const void *p;

	__asm__ volatile("" : "+r"(from));
	if (from > size - len) /* for the verifier: it never is */
		return -1;
	p = (const char *)bytes + from;
	if (len == 8)
		*(__u64 *)to = *(const __u64 *)p;
	else if (len == 4)
		*(__u32 *)to = *(const __u32 *)p;
	else if (len == 2)
		*(__u16 *)to = *(const __u16 *)p;
	else
		*(__u8 *)to = *(const __u8 *)p;
	return 0;
}

/* A register of the interrupted frame. */
FUSEE_FN int is_exact(const struct fusee_unwind *u)
{
	return (u->flags & FUSEE_PC_EXACT) != 0;
}

FUSEE_FN int is_java_code(const struct fusee_unwind *u, __u64 at)
{
	return at - u->scratch[LO] < (u->scratch[HI] & ~HI_FLAGS) - u->scratch[LO];
}

/* Is this address in code of the JVM, and behind a call? */
FUSEE_FN int is_behind_call(struct fusee_unwind *u, __u64 at)
{
	__u8 c[8]; /* call rel32; call *%reg; call *d8(%reg); call *d32(%reg) */

	if (!is_java_code(u, at) || fusee_read(u, c, 8, at - 8))
		return 0;
	return c[3] == 0xe8 || (c[6] == 0xff && (c[7] & 0xf8) == 0xd0) ||
	       (c[5] == 0xff && (c[6] & 0x38) == 0x10) || (c[2] == 0xff && (c[3] & 0x38) == 0x10);
}

/* The caller is at this pc; its sp is this. The frame pointer stays. */
FUSEE_FN int to_caller(struct fusee_unwind *u, __u64 pc, __u64 sp)
{
	u->pc = pc;
	u->sp = sp;
	return FUSEE_NEXT;
}

/* The caller, whose frame pointer was saved right below its return address, which is right below
 * `sp`. */
FUSEE_FN int to_caller_of_frame(struct fusee_unwind *u, __u64 sp)
{
	__u64 saved[2];

	if (AT(u, &saved, sp - 16))
		return fusee_stop(u, HOTSPOT_UNREADABLE);
	u->fp = saved[0];
	u->flags &= ~(__u32)FUSEE_FP_LOST;
	return to_caller(u, saved[1], sp);
}

#endif
