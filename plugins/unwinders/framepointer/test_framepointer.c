/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdbool.h>

#include <fusee/unwinder.bpf.h>

#include "reasons.h"

int fusee_step_framepointer(struct fusee_unwind *u);

#define STACK 0x7f0000000000ull
#define CODE 0x400000ull

struct world {
	__u64 stack[64];
	unsigned char code[64];
	int reads, fail;
};

static int read_world(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct world *w = n->arg;
	const char *from;

	if (++w->reads == w->fail)
		return -1;
	if (addr >= STACK && addr + len <= STACK + sizeof(w->stack))
		from = (char *)w->stack + (addr - STACK);
	else if (addr >= CODE && addr + len <= CODE + sizeof(w->code))
		from = (char *)w->code + (addr - CODE);
	else
		return -1;
	memcpy(dst, from, len);
	return 0;
}

static struct fusee_native start(struct world *w, __u64 pc, __u64 sp, __u64 fp)
{
	w->reads = 0;
	return (struct fusee_native){.u = {.pc = pc, .sp = sp, .fp = fp, .flags = FUSEE_PC_EXACT},
				     .read = read_world,
				     .arg = w};
}

/* push %rbp; mov %rsp,%rbp; nop; nop; nop; nop; pop %rbp; ret; at CODE + 16 */
static void write_function(struct world *w)
{
	static const unsigned char f[] = {0x55, 0x48, 0x89, 0xe5, 0x90, 0x90,
					  0x90, 0x90, 0x90, 0x5d, 0xc3};

	memset(w, 0, sizeof(*w));
	memcpy(w->code + 16, f, sizeof(f));
	/* the caller's frame at STACK + 160; the return address into it at STACK + 80 */
	w->stack[10] = 0x401234;
	w->stack[9] = STACK + 160;
}

/* At each instruction of a function with a frame the caller is right, and only in its middle a
 * guess. */
TEST(prologue_and_epilogue)
{
	static struct world w;
	const struct {
		int at;
		__u64 sp, fp;
		bool guessed;
	} cases[] = {
		{0, STACK + 80, STACK + 160, false},  /* push */
		{1, STACK + 72, STACK + 160, false},  /* mov */
		{4, STACK + 72, STACK + 72, false},   /* just behind the prologue */
		{6, STACK + 72, STACK + 72, true},    /* somewhere: who knows */
		{9, STACK + 72, STACK + 72, false},   /* pop, then ret */
		{10, STACK + 80, STACK + 160, false}, /* ret */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fusee_native n;

		write_function(&w);
		n = start(&w, CODE + 16 + (__u64)cases[i].at, cases[i].sp, cases[i].fp);
		CHECK_INT(fusee_step_framepointer(&n.u), FUSEE_NEXT);
		CHECK_INT(n.u.pc, 0x401234);
		CHECK_INT(n.u.sp, STACK + 88);
		CHECK_INT(n.u.fp, STACK + 160);
		CHECK_INT(!!(n.u.flags & FUSEE_GUESSED), cases[i].guessed);
		CHECK(!(n.u.flags & FUSEE_PC_EXACT));
	}
}

/* Code that cannot be read makes a guess; a stack that cannot be read ends it. */
TEST(each_read_failed)
{
	static struct world w;

	for (int at = 0; at <= 10; at++)
		for (int fail = 1; fail < 6; fail++) {
			struct fusee_native n;
			int r;

			write_function(&w);
			w.fail = fail;
			n = start(&w, CODE + 16 + (__u64)at, STACK + 72, STACK + 72);
			r = fusee_step_framepointer(&n.u);
			if (r == FUSEE_STOP)
				CHECK_INT(n.u.error, FRAMEPOINTER_REASON_UNREADABLE);
			else if (fail == 1 && w.reads >= 1)
				CHECK(n.u.flags & FUSEE_GUESSED);
		}
}

TEST(what_is_no_frame)
{
	static struct world w;
	const struct {
		__u64 fp;
		__u32 reason;
	} cases[] = {
		{0, FRAMEPOINTER_REASON_END},
		{STACK + 73, FRAMEPOINTER_REASON_NOT_A_FRAME},
		{STACK + 8, FRAMEPOINTER_REASON_NOT_A_FRAME}, /* below sp */
		{STACK + (64u << 20), FRAMEPOINTER_REASON_NOT_A_FRAME},
		{STACK + 4096, FRAMEPOINTER_REASON_UNREADABLE},
		{STACK + 400, FRAMEPOINTER_REASON_END}, /* return address 0 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fusee_native n;

		write_function(&w);
		n = start(&w, 0x900000, STACK + 72, cases[i].fp);
		n.u.flags = 0;
		CHECK_INT(fusee_step_framepointer(&n.u), FUSEE_STOP);
		CHECK_INT(n.u.error, cases[i].reason);
	}
}
