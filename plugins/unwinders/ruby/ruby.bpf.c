/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The Ruby unwinder's step. A thread's (or fiber's) methods and blocks have control frames on a
 * stack of the VM's own, innermost first. vm_exec_core() runs them; a frame of it on the C stack
 * stands for the control frames down to the first that C has called, which is marked FINISH. A
 * method that is implemented in C has a control frame too, without FINISH: the next frames of
 * vm_exec_core() begin with it. So the frames of C and Ruby are in step as long as each C frame
 * takes its control frames up to FINISH; where a sample is taken while the two disagree, at the
 * beginning and the end of vm_exec_core(), register r15 says which control frame it runs.
 */
#include <fusee/unwinder.bpf.h>

#include "lines.h"
#include "words.h"

/* u->scratch */
enum {
	CONTEXT, /* 0: not looked for */
	FRAME,   /* the next control frame */
	END,     /* of the VM's stack */
	SP,      /* of the C frame whose control frames are being pushed */
	INSIDE,  /* vm_exec_core() of the next rb_vm_exec() has pushed its frames */
	ISEQ,    /* of the frame that is pushed; of a C function: its method entry */
	BODY,    /* of the iseq; of a C function: its method's ID */
	NUMBER,  /* of the instruction; NO_INSTRUCTION: a C function */
};

#define LOOK 8 /* control frames that are passed over at once */

#define NO_INSTRUCTION (~0ull)

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

/* struct rb_iseq_constant_body from iseq_encoded on, to location.first_lineno */
struct body {
	__u64 encoded, parameters[6], path, base_label, label, first_line;
};
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

/* ---- the execution context ---- */

#define GLIBC_KEYS 0x310 /* struct pthread: the first block of 32 {sequence number, value} */

/* CONTEXT becomes the execution context of this thread. 0 or -1. */
static int find_context(struct fusee_unwind *u, __u32 by)
{
	__u64 at = u->bias + address(u, RUBY_CONTEXT),
	      offset = (__s64)(__s32)word(u, RUBY_CONTEXT_OFFSET);
	__u64 module, block;
	__u32 key;

	if (!u->tls)
		return -1;
	if (by == RUBY_BY_OFFSET)
		return AT(u, &u->scratch[CONTEXT], u->tls + offset);
	if (by == RUBY_BY_MODULE) {
		if (AT(u, &module, at) || module > 1u << 20 || AT(u, &block, u->tls + 8) ||
		    AT(u, &block, block + 16 * module))
			return -1;
	} else if (AT(u, &key, at) || key >= 32 ||
		   AT(u, &block, u->tls + GLIBC_KEYS + 16ull * key + 8)) {
		return -1;
	}
	return AT(u, &u->scratch[CONTEXT], block + offset);
}
FUSEE_PART(fusee_ruby_find_context, find_context)

/* FRAME becomes the thread's innermost control frame. 0 or -1. */
static int find_frames(struct fusee_unwind *u, __u32 unused)
{
	__u64 c[3]; /* vm_stack, its size in words, cfp */

	(void)unused;
	u->scratch[FRAME] = 0;
	if (FUSEE_CALL(fusee_ruby_find_context, u, word(u, RUBY_BY)) || !u->scratch[CONTEXT] ||
	    AT(u, &c, u->scratch[CONTEXT]) || c[1] > 1u << 28)
		return -1;
	u->scratch[END] = c[0] + 8 * c[1];
	if (c[2] < c[0] || c[2] >= u->scratch[END])
		return -1;
	u->scratch[FRAME] = c[2];
	return 0;
}
FUSEE_PART(fusee_ruby_find_frames, find_frames)

/* ---- the walk comes to a C frame ---- */

/* The flags of a control frame. 0, or -1: it cannot be read. */
FUSEE_FN int flags_of(struct fusee_unwind *u, __u64 frame, __u64 *flags)
{
	__u64 ep;

	return AT(u, &ep, frame + __builtin_offsetof(struct control_frame, ep)) || AT(u, flags, ep)
		       ? -1
		       : 0;
}

/* Was the C function interrupted in the part of it that words i and i + 1 describe? */
FUSEE_FN int is_in(struct fusee_unwind *u, __u32 i)
{
	__u64 at = u->pc - u->claim_lo;

	return u->flags & FUSEE_FIRST && at >= word(u, i) && at < word(u, i + 1);
}

/* vm_exec_core() was interrupted. Has it popped the last of its control frames? 1: it has. */
FUSEE_FN int core_is_done(struct fusee_unwind *u)
{
	__u64 frame = u->regs[FUSEE_X86_R15], flags = 0;

	if (u->claim_arg == RUBY_CORE && is_in(u, RUBY_CORE_END))
		return 1;
	/* what it has popped is in memory still */
	return frame + word(u, RUBY_FRAME_SIZE) == u->scratch[FRAME] &&
	       !flags_of(u, frame, &flags) && flags & FRAME_FINISH;
}

#define SAVED 64 /* words below a C frame in which its callees may have saved its r15 */

/* The first control frame from `frame` on that runs an iseq. 0: there is none near, or it cannot be
 * read. */
FUSEE_FN __u64 next_iseq(struct fusee_unwind *u, __u64 frame)
{
	__u64 flags = 0;
	__u32 kind;

	for (int i = 0; i < LOOK && frame < u->scratch[END]; i++) {
		if (flags_of(u, frame, &flags))
			return 0;
		kind = flags & FRAME_KIND;
		if (kind != FRAME_CFUNC && kind != FRAME_IFUNC && kind != FRAME_DUMMY)
			return frame;
		frame += word(u, RUBY_FRAME_SIZE);
	}
	return 0;
}

/*
 * The walk comes to vm_exec_core(), which has called something. Has C pushed the innermost control
 * frame, and has vm_exec_core() not begun to run it? Such a frame is marked FINISH and is at its
 * first instruction; so may be a frame that this C frame runs. The r15 of this C frame decides,
 * which a callee has saved. 1: it has not begun.
 */
static int is_pending(struct fusee_unwind *u, __u32 unused)
{
	__u64 frame = u->scratch[FRAME], flags = 0, pc, iseq, body, encoded, next, w;

	(void)unused;
	if (flags_of(u, frame, &flags) || !(flags & FRAME_FINISH) || AT(u, &pc, frame) ||
	    AT(u, &iseq, frame + __builtin_offsetof(struct control_frame, iseq)) ||
	    AT(u, &body, iseq + 16) || AT(u, &encoded, body + BODY_ENCODED) || pc != encoded)
		return 0;
	next = next_iseq(u, frame + word(u, RUBY_FRAME_SIZE));
	if (!next)
		return 0;
	for (int i = 1; i < SAVED; i++) {
		if (u->sp - 8 * i < u->first_sp || AT(u, &w, u->sp - 8 * i))
			break;
		if (w == next || w == frame)
			return w == next;
	}
	return u->regs[FUSEE_X86_R15] == next;
}
FUSEE_PART(fusee_ruby_is_pending, is_pending)

/* 1: this C frame has control frames; 0: it has none; or -1: they cannot be found. */
static int enter(struct fusee_unwind *u, __u32 code)
{
	__u64 inside = u->scratch[INSIDE];

	u->scratch[SP] = u->sp;
	u->scratch[INSIDE] = 0;
	/* where the core begins, rb_vm_exec() pushes; it is also called for a list of its
	 * instructions */
	if (code == RUBY_CORE && is_in(u, RUBY_CORE_BEGIN))
		return 0;
	u->scratch[INSIDE] = code != RUBY_EXEC;
	if (code == RUBY_EXEC && inside)
		return 0;
	if (!u->scratch[CONTEXT]) {
		if (FUSEE_CALL(fusee_ruby_find_frames, u, 0))
			return -1;
		if (code != RUBY_EXEC && !(u->flags & FUSEE_FIRST) &&
		    FUSEE_CALL(fusee_ruby_is_pending, u, 0) == 1)
			u->scratch[FRAME] += word(u, RUBY_FRAME_SIZE);
	}
	if (code == RUBY_EXEC)
		return !is_in(u, RUBY_EXEC_END) && !is_in(u, RUBY_EXEC_RETURN);
	return !(u->flags & FUSEE_FIRST && core_is_done(u));
}
FUSEE_PART(fusee_ruby_enter, enter)

/* ---- frames ---- */

/* A method's definition, by the environment of its frame. 0, or -1: it has none. */
FUSEE_FN int method_of(struct fusee_unwind *u, __u64 ep)
{
	__u64 m[5], flags, id;

	/* ep[-2] of a C function's frame is its method entry */
	if (AT(u, &u->scratch[ISEQ], ep - 16) || !u->scratch[ISEQ] || AT(u, &m, u->scratch[ISEQ]))
		return -1;
	flags = m[0];
	if ((flags & 31) != 0x1a || (flags >> 12 & 15) != 6) /* T_IMEMO, imemo_ment */
		return -1;
	if (AT(u, &id, m[2] + 32))
		return -1;
	u->scratch[BODY] = id;
	return 0;
}

/* Pushes a C function. 0 or -1. */
static int push_c(struct fusee_unwind *u, __u32 unused)
{
	__u64 ep;

	(void)unused;
	if (AT(u, &ep, u->scratch[FRAME] + __builtin_offsetof(struct control_frame, ep)) ||
	    method_of(u, ep))
		return -1;
	u->scratch[NUMBER] = NO_INSTRUCTION;
	return fusee_push(u, ruby_mix(ruby_mix(0x72756279, u->scratch[ISEQ]), u->scratch[BODY]),
			  NO_INSTRUCTION);
}
FUSEE_PART(fusee_ruby_push_c, push_c)

/* Pushes FRAME, which runs an iseq. 0 or -1. */
static int push_iseq(struct fusee_unwind *u, __u32 unused)
{
	struct control_frame f;
	struct body b;
	__u64 key, number;

	(void)unused;
	if (AT(u, &f, u->scratch[FRAME]) || AT(u, &u->scratch[BODY], f.iseq + 16) ||
	    AT(u, &b, u->scratch[BODY] + BODY_ENCODED))
		return -1;
	u->scratch[ISEQ] = f.iseq;
	/* pc is behind the instruction, but for a function that has not begun */
	number = (f.pc - b.encoded) / 8;
	u->scratch[NUMBER] = f.pc < b.encoded || number > 1u << 24 ? 0 : number ? number - 1 : 0;
	key = ruby_mix(
		ruby_mix(ruby_mix(ruby_mix(ruby_mix(0x72756279, f.iseq), b.encoded), b.label),
			 b.path),
		b.first_line);
	return fusee_push(u, key, u->scratch[NUMBER]);
}
FUSEE_PART(fusee_ruby_push_iseq, push_iseq)

/* Pushes the next control frame that has a function. */
static int push(struct fusee_unwind *u, __u32 unused)
{
	__u32 size = word(u, RUBY_FRAME_SIZE), kind = 0;
	__u64 flags = 0;

	(void)unused;
	for (int i = 0; i < LOOK; i++) {
		if (u->scratch[FRAME] + size > u->scratch[END])
			return fusee_stop(u, RUBY_OUT_OF_STEP);
		if (flags_of(u, u->scratch[FRAME], &flags))
			return fusee_stop(u, RUBY_UNREADABLE);
		kind = flags & FRAME_KIND;
		if (kind != FRAME_IFUNC && kind != FRAME_DUMMY)
			break;
		u->scratch[FRAME] += size;
	}
	if (kind == FRAME_IFUNC || kind == FRAME_DUMMY)
		return FUSEE_AGAIN;
	if (!(kind & 1)) /* all kinds have this bit */
		return fusee_stop(u, RUBY_UNREADABLE);
	if (kind == FRAME_CFUNC ? FUSEE_CALL(fusee_ruby_push_c, u, 0)
				: FUSEE_CALL(fusee_ruby_push_iseq, u, 0))
		return fusee_stop(u, RUBY_UNREADABLE);
	u->scratch[FRAME] += size;
	return kind != FRAME_CFUNC && flags & FRAME_FINISH ? FUSEE_NATIVE : FUSEE_AGAIN;
}
FUSEE_PART(fusee_ruby_push, push)

/* ---- what names a function ---- */

/* Copies a String to dst, which has room for cap bytes, a power of two or 3/4 of one. The bytes; 0:
 * it cannot be read. */
FUSEE_FN __u32 text(struct fusee_unwind *u, char *dst, __u32 cap, __u64 string)
{
	__u32 embed = word(u, RUBY_STRING_EMBED), n;
	__u64 s[4], at, length; /* flags, class, length, characters or their address */

	if (!string || string & 7 || AT(u, &s, string) || (s[0] & 31) != 5)
		return 0;
	if (s[0] & 1 << 13) {
		length = s[2];
		at = s[3];
	} else {
		length = embed == 16 ? s[0] >> 14 & 31 : s[2];
		at = string + embed;
	}
	n = length > cap ? cap : (__u32)length;
	__asm__ volatile("" : "+r"(n));
	n &= 1023;
	if (n > cap || !n || fusee_read(u, dst, n, at))
		return 0;
	return n;
}

/* Word i of an Array. 0: there is none. */
FUSEE_FN __u64 element(struct fusee_unwind *u, __u64 array, __u64 i)
{
	__u64 a[5], v; /* flags, class, length or word 0, .., address */

	if (!array || array & 7 || AT(u, &a, array) || (a[0] & 31) != 7)
		return 0;
	if (a[0] & 1 << 13)
		return i < (a[0] >> 15 & (word(u, RUBY_STRING_EMBED) == 16 ? 3 : 127)) &&
				       !AT(u, &v, array + 16 + 8 * i)
			       ? v
			       : 0;
	return i < a[2] && !AT(u, &v, a[4] + 8 * i) ? v : 0;
}

#define SYMBOLS_IDS 16   /* offset of the Array of Arrays of all symbols */
#define SYMBOLS_UNIT 512 /* symbols of one of them, with two words each */
#define ID_SCOPE_SHIFT 4

/* The String of a method's ID. 0: not found. */
FUSEE_FN __u64 name_of(struct fusee_unwind *u, __u64 id)
{
	__u64 at = address(u, RUBY_SYMBOLS), ids, number = id;

	if (!at || AT(u, &ids, u->bias + at + SYMBOLS_IDS))
		return 0;
	if (id > word(u, RUBY_LAST_OPERATOR))
		number = id >> ID_SCOPE_SHIFT;
	ids = element(u, ids, number / SYMBOLS_UNIT);
	return element(u, ids, number % SYMBOLS_UNIT * 2);
}

static int emit_c(struct fusee_unwind *u, __u32 unused)
{
	struct ruby_function *f = fusee_buffer(u);

	(void)unused;
	if (!f)
		return -1;
	f->first_line = 0;
	f->is_c = 1;
	f->pad = 0;
	f->path_bytes = 0;
	f->label_bytes = text(u, f->label, RUBY_LABEL_BYTES, name_of(u, u->scratch[BODY]));
	return fusee_emit(u, RUBY_FUNCTION, u->pushed[0],
			  __builtin_offsetof(struct ruby_function, path));
}
FUSEE_PART(fusee_ruby_emit_c, emit_c)

static int emit_function(struct fusee_unwind *u, __u32 unused)
{
	struct ruby_function *f = fusee_buffer(u);
	struct body b;
	__u64 type, path;
	__u32 n;

	(void)unused;
	if (!f || AT(u, &b, u->scratch[BODY] + BODY_ENCODED))
		return -1;
	f->first_line = word(u, RUBY_FIRST_LINE) ? (__u32)(b.first_line >> 1) : (__u32)b.first_line;
	f->is_c = 0;
	f->pad = 0;
	f->label_bytes = text(u, f->label, RUBY_LABEL_BYTES, b.label);
	path = b.path; /* a String, or an Array of it and its real path */
	if (!AT(u, &type, path) && (type & 31) == 7)
		path = element(u, path, 0);
	n = text(u, f->path, RUBY_PATH_BYTES, path);
	f->path_bytes = n;
	__asm__ volatile("" : "+r"(n));
	n &= 1023;
	if (n > RUBY_PATH_BYTES)
		return -1;
	return fusee_emit(u, RUBY_FUNCTION, u->pushed[0],
			  __builtin_offsetof(struct ruby_function, path) + n);
}
FUSEE_PART(fusee_ruby_emit_function, emit_function)

static int emit_place(struct fusee_unwind *u, __u32 unused)
{
	struct ruby_place *p = fusee_buffer(u);
	__u64 key = ruby_mix(u->pushed[0], u->pushed[1]);

	(void)unused;
	if (!p)
		return -1;
	p->function = u->pushed[0];
	p->line = ruby_line(u, u->scratch[BODY] + word(u, RUBY_INSNS), word(u, RUBY_INSN_SIZE),
			    u->scratch[NUMBER]);
	p->pad = 0;
	return fusee_emit(u, RUBY_PLACE, key, sizeof(*p));
}
FUSEE_PART(fusee_ruby_emit_place, emit_place)

/* Emits what names the frame that was pushed. What has no room comes with the next sample. */
static int emit(struct fusee_unwind *u, __u32 is_c)
{
	if (fusee_emitted(u, RUBY_FUNCTION, u->pushed[0]))
		return 0;
	return is_c ? FUSEE_CALL(fusee_ruby_emit_c, u, 0)
		    : FUSEE_CALL(fusee_ruby_emit_function, u, 0);
}
FUSEE_PART(fusee_ruby_emit, emit)

/* ---- the step ---- */

static int ruby_step(struct fusee_unwind *u)
{
	__u32 is_c;
	int r;

	if (u->scratch[SP] != u->sp) {
		r = FUSEE_CALL(fusee_ruby_enter, u, (__u32)u->claim_arg);
		if (r < 0)
			return fusee_stop(u, RUBY_NO_CONTEXT);
		if (!r)
			return FUSEE_NATIVE;
	}
	r = FUSEE_CALL(fusee_ruby_push, u, 0);
	if (u->npushed) {
		is_c = u->pushed[1] == NO_INSTRUCTION;
		if (is_c || !fusee_emitted(u, RUBY_PLACE, ruby_mix(u->pushed[0], u->pushed[1]))) {
			FUSEE_CALL(fusee_ruby_emit, u, is_c);
			if (!is_c)
				FUSEE_CALL(fusee_ruby_emit_place, u, 0);
		}
	}
	return r;
}
FUSEE_LANGUAGE_STEP(ruby, ruby_step);
