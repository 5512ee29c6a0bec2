/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The state that all parts of the step share: u->scratch, the table's words, control frames. */
#ifndef RUBY_STATE_H
#define RUBY_STATE_H

#include <fusee/unwinder.bpf.h>

#include "words.h"

/* u->scratch */
enum {
	CONTEXT, /* 0: not looked for */
	FRAME,   /* the next control frame */
	END,     /* of the VM's stack */
	SP,      /* of the C frame whose control frames are being pushed */
	INSIDE,  /* bits 0, 1: 1: vm_exec_core() of the next rb_vm_exec() has pushed its frames;
		  * ALL_INSIDE; the others: see near.h */
	ISEQ,    /* of the frame that is pushed */
	BODY,    /* of the iseq, at first its pc; of a C function: its method's ID */
	OWNER,   /* class or module of its method, at first that method's entry; 0: none */
};

#define LOOK 8 /* control frames that are passed over at once */

#define ALL_INSIDE 2 /* code of YJIT has pushed those of the next C frame of the VM */

#define NO_INSTRUCTION (~0ull)
#define UNKNOWN_INSTRUCTION (~1ull) /* code made at run time has not written where it is */

#define AT(u, what, addr) fusee_read(u, what, sizeof(*(what)), addr)

/* vm_core.h of 2.7 to 3.3: enum, and the words around a frame's environment pointer */
#define FRAME_KIND 0x7fff0001
#define FRAME_CFUNC 0x55550001
#define FRAME_IFUNC 0x66660001
#define FRAME_DUMMY 0x79990001
#define FRAME_FINISH 0x20

struct control_frame {
	__u64 pc, sp, iseq, self, ep;
};

/* struct rb_iseq_constant_body up to location.first_lineno. The upper half of `size` is the number
 * of words of code, the lower half the type. */
struct body {
	__u64 size, encoded, parameters[6], path, base_label, label, first_line;
};
#define BODY_SIZE 0
#define BODY_ENCODED 8

FUSEE_FN __u32 word(struct fusee_unwind *u, __u32 i)
{
	__u32 w;

	return fusee_slab32(u, i, &w) ? 0 : w;
}

FUSEE_FN __u64 address(struct fusee_unwind *u, __u32 i)
{
	return word(u, i) + ((__u64)word(u, i + 1) << 32);
}

#define INSIDE_BITS 3ull /* of INSIDE */

FUSEE_FN __u64 inside(const struct fusee_unwind *u)
{
	return u->scratch[INSIDE] & INSIDE_BITS;
}

FUSEE_FN void set_inside(struct fusee_unwind *u, __u64 value)
{
	u->scratch[INSIDE] = (u->scratch[INSIDE] & ~INSIDE_BITS) | value;
}

/* The flags of a control frame. 0, or -1: it cannot be read. */
FUSEE_FN int flags_of(struct fusee_unwind *u, __u64 frame, __u64 *flags)
{
	__u64 ep;

	return AT(u, &ep, frame + __builtin_offsetof(struct control_frame, ep)) || AT(u, flags, ep)
		       ? -1
		       : 0;
}

#endif
