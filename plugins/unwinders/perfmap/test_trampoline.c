/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/perfmap
#include "test.h"

#include <fusee/unwinder.bpf.h>

#include "reasons.h"

int fusee_step_perfmap(struct fusee_unwind *u);

#define STACK 0x7f0000000000ull
#define CODE 0x400000ull
#define CALLER 0x401234ull

struct world {
	__u64 stack[32];
	unsigned char code[64]; /* trampolines from CODE on */
	int no_code, no_stack;
};

static const unsigned char trampoline[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1,
					   0x48, 0x83, 0xc4, 0x08, 0xc3};

static int read_world(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct world *w = n->arg;
	const char *from;

	if (!w->no_stack && addr >= STACK && addr + len <= STACK + sizeof(w->stack))
		from = (char *)w->stack + (addr - STACK);
	else if (!w->no_code && addr >= CODE && addr + len <= CODE + sizeof(w->code))
		from = (char *)w->code + (addr - CODE);
	else
		return -1;
	memcpy(dst, from, len);
	return 0;
}

static struct fusee_native start(struct world *w, __u64 arg, __u64 pc, __u64 sp, __u32 flags)
{
	return (struct fusee_native){.u = {.pc = pc,
					   .sp = sp,
					   .fp = STACK + 80,
					   .flags = flags,
					   .claim_arg = arg,
					   .claim_lo = CODE,
					   .valid_regs = 0xffff},
				     .read = read_world,
				     .arg = w};
}

/* 3.12 packs them, 3.13 aligns them to 16 bytes. */
static void write_trampolines(struct world *w, size_t pitch)
{
	memset(w, 0, sizeof(*w));
	for (size_t at = 0; at + sizeof(trampoline) <= sizeof(w->code); at += pitch)
		memcpy(w->code + at, trampoline, sizeof(trampoline));
	w->stack[4] = CALLER;
}

/* At each of its instructions, the caller is right, and other registers are as they were. */
TEST(python)
{
	static struct world w;
	const struct {
		__u64 at, sp;
	} cases[] = {
		{0, STACK + 32},  /* sub */
		{4, STACK + 24},  /* call */
		{6, STACK + 24},  /* add */
		{10, STACK + 32}, /* ret */
	};

	for (size_t pitch = 11; pitch <= 16; pitch += 5)
		for (size_t which = 0; which < 3; which++)
			for (size_t i = 0; i < 4; i++) {
				struct fusee_native n;

				write_trampolines(&w, pitch);
				n = start(&w, PERFMAP_PYTHON, CODE + which * pitch + cases[i].at,
					  cases[i].sp, FUSEE_PC_EXACT | FUSEE_FIRST);
				CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_NEXT);
				CHECK_INT(n.u.pc, CALLER);
				CHECK_INT(n.u.sp, STACK + 40);
				CHECK_INT(n.u.fp, STACK + 80);
				CHECK_INT(n.u.valid_regs, 0xf008);
				CHECK(!(n.u.flags & FUSEE_PC_EXACT));
			}
}

/* A return address, also where the code cannot be read any more; what is no trampoline is another
 * unwinder's. */
TEST(python_callers)
{
	static struct world w;
	struct fusee_native n;

	write_trampolines(&w, 11);
	n = start(&w, PERFMAP_PYTHON, CODE + 6, STACK + 24, 0);
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.pc, CALLER);
	w.no_code = 1;
	n = start(&w, PERFMAP_PYTHON, CODE + 6, STACK + 24, 0);
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.pc, CALLER);
	n = start(&w, PERFMAP_PYTHON, CODE + 6, STACK + 24, FUSEE_PC_EXACT);
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_PASS);
	CHECK_INT(n.u.sp, STACK + 24);
	w.no_code = 0;
	n = start(&w, PERFMAP_PYTHON, CODE + 8, STACK + 24, 0);
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_PASS);
	n = start(&w, 0, CODE + 6, STACK + 24, 0);
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_PASS);
	w.no_stack = 1;
	n = start(&w, PERFMAP_PYTHON, CODE + 6, STACK + 24, 0);
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_STOP);
	CHECK_INT(n.u.error, PERFMAP_REASON_UNREADABLE);
}

/* A trampoline is omitted where its function was shown by another unwinder. */
TEST(python_once)
{
	static struct world w;
	struct fusee_native n;

	write_trampolines(&w, 11);
	n = start(&w, PERFMAP_PYTHON, CODE + 6, STACK + 24, 0);
	n.u.stored = 1;
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_NEXT_OMIT);
	CHECK_INT(n.u.pc, CALLER);
	n.u.pc = CODE + 17; /* its caller's; nothing was shown in between */
	n.u.sp = STACK + 24;
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.pc, CALLER);
	n.u.pc = CODE + 28;
	n.u.sp = STACK + 24;
	n.u.stored = 3;
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_NEXT_OMIT);
}

/* Frame pointers lead on, until there is none. */
TEST(erlang)
{
	static struct world w;
	struct fusee_native n;
	const __u64 none[] = {0,          STACK + 81, STACK + 8, STACK + (8u << 20), STACK + 4096,
			      STACK + 160};

	memset(&w, 0, sizeof(w));
	w.stack[11] = CALLER;
	n = start(&w, PERFMAP_ERLANG, CODE, STACK + 24, 0);
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_PASS);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		n = start(&w, PERFMAP_ERLANG, CODE, STACK + 24, 0);
		n.u.fp = none[i];
		CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_STOP);
		CHECK_INT(n.u.error, PERFMAP_REASON_ERLANG);
	}
	n = start(&w, PERFMAP_ERLANG, CODE, STACK + 24, FUSEE_FP_LOST);
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_STOP);
	n = start(&w, PERFMAP_ERLANG, CODE, STACK + 24, FUSEE_PC_EXACT | FUSEE_FIRST);
	CHECK_INT(fusee_step_perfmap(&n.u), FUSEE_PASS);
}
