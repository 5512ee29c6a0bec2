/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The Ruby unwinder's step. A thread's (or fiber's) methods and blocks have control frames on a
 * stack of the VM's own, innermost first. vm_exec_core() runs them; a frame of it on the C stack
 * stands for the control frames down to the first that C has called, which is marked FINISH. A
 * method that is implemented in C has a control frame too, without FINISH: the next frames of
 * vm_exec_core() begin with it. So each C frame takes the control frames up to the next FINISH. At
 * the beginning and the end of vm_exec_core() the two stacks do not agree; there register r15 has
 * the control frame that it runs.
 */
#include <fusee/unwinder.bpf.h>

#include "names.h"
#include "near.h"

/* ---- the execution context ---- */

#define GLIBC_KEYS 0x310 /* struct pthread: the first block of 32 {sequence number, value} */

/* Sets CONTEXT to the execution context of this thread. 0 or -1. */
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

/* Sets FRAME to the thread's innermost control frame. 0 or -1. */
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

/* Was the C function interrupted between the offsets in words i and i + 1? */
FUSEE_FN int is_in(struct fusee_unwind *u, __u32 i)
{
	__u64 at = u->pc - u->claim_lo;

	return u->flags & FUSEE_FIRST && at >= word(u, i) && at < word(u, i + 1);
}

/* Has code of YJIT returned a result to rb_vm_exec(), so that vm_exec_core() will not go on? */
FUSEE_FN int is_behind_jit(struct fusee_unwind *u)
{
	return (is_in(u, RUBY_EXEC_JIT) || is_in(u, RUBY_EXEC_JIT_2)) &&
	       u->regs[FUSEE_X86_RAX] != word(u, RUBY_UNDEF);
}

/* vm_exec_core() was interrupted. Has it popped the last of its control frames? 1: it has. */
FUSEE_FN int core_is_done(struct fusee_unwind *u)
{
	__u64 frame = u->regs[FUSEE_X86_R15], flags = 0;

	if (u->claim_arg == RUBY_CORE && is_in(u, RUBY_CORE_END))
		return 1;
	/* the popped control frame is still in memory */
	return frame + word(u, RUBY_FRAME_SIZE) == u->scratch[FRAME] &&
	       !flags_of(u, frame, &flags) && flags & FRAME_FINISH;
}

#define SAVED 96 /* words below a C frame in which its callees may have saved its r15 */

/* Returns the first control frame from `frame` on that runs an iseq. 0: there is none near, or it
 * cannot be read. */
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

/* Can it be that the VM has not begun to run the innermost control frame? Such a frame is marked
 * FINISH and is at its first instruction. In 2.7 frames are linked before they are filled in. */
FUSEE_FN int may_be_pending(struct fusee_unwind *u)
{
	__u64 frame = u->scratch[FRAME], flags = 0, pc, iseq, body, encoded;

	if (word(u, RUBY_PUBLISHED_EARLY))
		return flags_of(u, frame, &flags) || (flags & FRAME_KIND) != FRAME_CFUNC;
	return !flags_of(u, frame, &flags) && flags & FRAME_FINISH && !AT(u, &pc, frame) &&
	       !AT(u, &iseq, frame + __builtin_offsetof(struct control_frame, iseq)) &&
	       !AT(u, &body, iseq + 16) && !AT(u, &encoded, body + BODY_ENCODED) && pc == encoded;
}

/*
 * The walk comes to vm_exec_core(), or to code of YJIT, which has called something. Has C code
 * pushed the innermost control frame, and has the VM not begun to run it? A control frame that this
 * C frame runs may look the same. Its register `reg`, which a callee has saved, decides: it has the
 * control frame that the C frame runs. 1: the VM has not begun.
 */
static int is_pending(struct fusee_unwind *u, __u32 reg)
{
	__u64 frame = u->scratch[FRAME], next, w;

	if (!may_be_pending(u))
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
	return u->regs[reg == FUSEE_X86_R13 ? FUSEE_X86_R13 : FUSEE_X86_R15] == next;
}
FUSEE_PART(fusee_ruby_is_pending, is_pending)

/* vm_exec_core() was interrupted. Has it pushed a control frame of an iseq that it has not begun to
 * run? At its end r15 is already the caller's. */
FUSEE_FN int core_pushes(struct fusee_unwind *u, __u32 code)
{
	__u64 frame = u->scratch[FRAME], flags = 0;

	return u->regs[FUSEE_X86_R15] == frame + word(u, RUBY_FRAME_SIZE) &&
	       !(code == RUBY_CORE && is_in(u, RUBY_CORE_END)) &&
	       (flags_of(u, frame, &flags) || (flags & FRAME_KIND) != FRAME_CFUNC);
}

/* Finds the control frames when the walk comes to the first C frame of the VM. 0 or -1. */
FUSEE_FN int begin_in_vm(struct fusee_unwind *u, __u32 code)
{
	if (FUSEE_CALL(fusee_ruby_find_frames, u, 0))
		return -1;
	if (code != RUBY_EXEC &&
	    (u->flags & FUSEE_FIRST ? core_pushes(u, code)
				    : FUSEE_CALL(fusee_ruby_is_pending, u, FUSEE_X86_R15) == 1))
		u->scratch[FRAME] += word(u, RUBY_FRAME_SIZE);
	return 0;
}

/* Does this C frame have control frames? 1, 0, or -1: they cannot be found. */
static int enter(struct fusee_unwind *u, __u32 code)
{
	__u64 before = inside(u);

	u->scratch[SP] = u->sp;
	set_inside(u, 0);
	begin_near(u);
	/* at the beginning of vm_exec_core() the frames are those of rb_vm_exec(); and it is also
	 * called to list its instructions, without any frame */
	if (code == RUBY_CORE && is_in(u, RUBY_CORE_BEGIN))
		return 0;
	set_inside(u, code != RUBY_EXEC);
	if (before && (code == RUBY_EXEC || before == ALL_INSIDE))
		return 0;
	if (!u->scratch[CONTEXT] && begin_in_vm(u, code))
		return -1;
	if (code == RUBY_EXEC)
		return !is_in(u, RUBY_EXEC_END) && !is_in(u, RUBY_EXEC_RETURN) && !is_behind_jit(u);
	return !(u->flags & FUSEE_FIRST && core_is_done(u));
}
FUSEE_PART(fusee_ruby_enter, enter)

/* Ends the stack at the outermost function of a fiber or thread, where all its control frames must
 * have been pushed. */
static int end_coroutine(struct fusee_unwind *u, __u32 unused)
{
	(void)unused;
	if (u->scratch[CONTEXT] && next_iseq(u, u->scratch[FRAME]))
		return fusee_stop(u, RUBY_OUT_OF_STEP);
	return fusee_stop(u, 0);
}
FUSEE_PART(fusee_ruby_end_coroutine, end_coroutine)

/* ---- frames ---- */

#define FRAME_LOCAL 2 /* in flags: the environment is a method's, not a block's */
#define OUTER 8       /* the most blocks around a block */

/* struct rb_method_entry_struct. If it is an imemo_svar, `about` is the entry that it has
 * replaced. */
struct method {
	__u64 flags, about, definition, called, owner;
};
#define SPECIAL 64       /* nil and others, which are no addresses */
#define DEFINITION_ID 32 /* original_id in struct rb_method_definition_struct */

/* The kind of an internal object, enum imemo_type; 16: it is another object. */
FUSEE_FN __u32 imemo(__u64 flags)
{
	return (flags & 31) == 0x1a ? flags >> 12 & 15 : 16;
}
#define IMEMO_SVAR 2
#define IMEMO_METHOD 6

/* Replaces OWNER, a method's entry, by the method's class, and if `is_c` sets BODY to the ID of the
 * C function. 0; 1: it is no method's entry, and OWNER is 0; -1: it cannot be read. */
static int read_method(struct fusee_unwind *u, __u32 is_c)
{
	__u64 at = u->scratch[OWNER];
	struct method m;

	u->scratch[OWNER] = 0;
	if (at & 7 || at <= SPECIAL)
		return 1;
	if (AT(u, &m, at) || (imemo(m.flags) == IMEMO_SVAR && m.about && AT(u, &m, m.about)))
		return -1;
	if (imemo(m.flags) != IMEMO_METHOD)
		return 1;
	u->scratch[OWNER] = m.owner;
	return is_c ? AT(u, &u->scratch[BODY], m.definition + DEFINITION_ID) : 0;
}
FUSEE_PART(fusee_ruby_read_method, read_method)

/* Replaces OWNER, the environment around a block, by the entry of the method that contains the
 * block, or by 0 if there is none within OUTER blocks. 0, or -1: it cannot be read. */
static int find_method(struct fusee_unwind *u, __u32 unused)
{
	__u64 ep = u->scratch[OWNER];
	struct environment e = {0};
	struct near *n = near(u);

	(void)unused;
	u->scratch[OWNER] = 0;
	for (int i = 0; n && i < OUTER; i++) {
		if (environment_at(u, n, &e, ep))
			return -1;
		if (e.flags & FRAME_LOCAL) {
			u->scratch[OWNER] = e.method;
			return 0;
		}
		ep = e.outer & ~3ull;
	}
	return 0;
}
FUSEE_PART(fusee_ruby_find_method, find_method)

/* Pushes a C function, whose method's entry is OWNER. 0 or -1. */
FUSEE_FN int push_c(struct fusee_unwind *u, struct near *n)
{
	if (recall(u, n, 0, u->scratch[OWNER], NO_INSTRUCTION))
		return fusee_push(u, n->key, NO_INSTRUCTION);
	if (FUSEE_CALL(fusee_ruby_read_method, u, 1))
		return -1;
	return fusee_push(u, fusee_mix(fusee_mix(0x72756279, u->scratch[OWNER]), u->scratch[BODY]),
			  NO_INSTRUCTION);
}

/* Makes the key of the function of ISEQ, and pushes its frame. BODY has the pc, OWNER the method's
 * entry. 0 or -1. */
static int push_new(struct fusee_unwind *u, __u32 unused)
{
	__u64 key, at, pc = u->scratch[BODY];
	struct near *n = near(u);
	struct body b;

	(void)unused;
	if (!n || AT(u, &u->scratch[BODY], u->scratch[ISEQ] + 16) ||
	    AT(u, &b, u->scratch[BODY] + BODY_SIZE))
		return -1;
	if (FUSEE_CALL(fusee_ruby_read_method, u, 0) < 0)
		return -1;
	at = pc - b.encoded;
	if (at > 8 * (b.size >> 32)) {
		pc = UNKNOWN_INSTRUCTION;
		n->memory = 0;
	}
	key = fusee_mix(fusee_mix(fusee_mix(0x72756279, u->scratch[ISEQ]), b.encoded), b.label);
	key = fusee_mix(fusee_mix(fusee_mix(key, b.path), b.first_line), u->scratch[OWNER]);
	return fusee_push(u, key, pc);
}
FUSEE_PART(fusee_ruby_push_new, push_new)

/* Pushes the frame of ISEQ with the environment e. BODY has the pc. 0 or -1. */
FUSEE_FN int push_iseq(struct fusee_unwind *u, struct near *n, const struct environment *e)
{
	u->scratch[OWNER] = e->flags & FRAME_LOCAL ? e->method : e->outer & ~3ull;
	if (!(e->flags & FRAME_LOCAL) && FUSEE_CALL(fusee_ruby_find_method, u, 0))
		return -1;
	if (recall(u, n, u->scratch[ISEQ], u->scratch[OWNER], u->scratch[BODY]))
		return fusee_push(u, n->key, u->scratch[BODY]);
	return FUSEE_CALL(fusee_ruby_push_new, u, 0);
}

/* Pushes the next control frame, if it has a function. */
static int push(struct fusee_unwind *u, __u32 unused)
{
	__u32 size = word(u, RUBY_FRAME_SIZE), kind;
	const struct control_frame *f;
	struct environment e;
	struct near *n = near(u);

	(void)unused;
	if (u->scratch[FRAME] + size > u->scratch[END])
		return fusee_stop(u, RUBY_OUT_OF_STEP);
	f = n ? frame_at(u, n) : 0;
	if (!f || environment_at(u, n, &e, f->ep))
		return fusee_stop(u, RUBY_UNREADABLE);
	kind = e.flags & FRAME_KIND;
	if (!(kind & 1)) /* every kind has this bit: this is no frame */
		return fusee_stop(u, RUBY_UNREADABLE);
	if (kind == FRAME_CFUNC) {
		u->scratch[OWNER] = e.method;
		if (push_c(u, n))
			return fusee_stop(u, RUBY_UNREADABLE);
	} else if (kind != FRAME_IFUNC && kind != FRAME_DUMMY) {
		u->scratch[ISEQ] = f->iseq;
		u->scratch[BODY] = f->pc;
		if (push_iseq(u, n, &e))
			return fusee_stop(u, RUBY_UNREADABLE);
		if (e.flags & FRAME_FINISH) {
			u->scratch[FRAME] += size;
			return FUSEE_NATIVE;
		}
	}
	u->scratch[FRAME] += size;
	return FUSEE_AGAIN;
}
FUSEE_PART(fusee_ruby_push, push)

#include "yjit.h"

/* ---- the step ---- */

static int ruby_step(struct fusee_unwind *u)
{
	int r;

	if (u->claim_arg == RUBY_JIT)
		return jit_step(u);
	if (u->claim_arg == RUBY_COROUTINE)
		return FUSEE_CALL(fusee_ruby_end_coroutine, u, 0);
	if (u->scratch[SP] != u->sp) {
		r = FUSEE_CALL(fusee_ruby_enter, u, (__u32)u->claim_arg);
		if (r < 0)
			return fusee_stop(u, RUBY_NO_CONTEXT);
		if (!r)
			return FUSEE_NATIVE;
	}
	r = FUSEE_CALL(fusee_ruby_push, u, 0);
	if (u->npushed)
		emit(u);
	return r;
}
FUSEE_LANGUAGE_STEP(ruby, ruby_step);
