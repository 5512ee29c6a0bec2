/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/framepointer
#include "test.h"

#include <fusee/unwinder.bpf.h>

#include "reasons.h"

int fusee_step_framepointer(struct fusee_unwind *u);

#define STACK 0x7f0000000000ull
#define CODE 0x400000ull
#define CALLER 0x401234ull /* a return address */

struct world {
	__u64 stack[64];
	unsigned char code[64];
	int reads, fail; /* the fail-th read fails; 0: none */
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
	w->stack[10] = CALLER;
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
		CHECK_INT(n.u.pc, CALLER);
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
			bool by_code = at == 0 || at == 10; /* sp leads to the return address */
			struct fusee_native n;
			int r;

			write_function(&w);
			w.stack[20] = STACK + 240; /* the caller's own caller */
			w.stack[21] = CALLER + 32;
			w.fail = fail;
			n = start(&w, CODE + 16 + (__u64)at, by_code ? STACK + 80 : STACK + 72,
				  by_code || at == 1 ? STACK + 160 : STACK + 72);
			r = fusee_step_framepointer(&n.u);
			if (r == FUSEE_STOP)
				CHECK_INT(n.u.error, FRAMEPOINTER_REASON_UNREADABLE);
			else if (n.u.pc != CALLER)
				CHECK(n.u.flags & FUSEE_GUESSED);
		}
}

/* Without a look at the code at all, what rbp leads to is a guess. */
TEST(unreadable_code)
{
	static struct world w;
	struct fusee_native n;

	write_function(&w);
	n = start(&w, 0x900000, STACK + 72, STACK + 72);
	CHECK_INT(fusee_step_framepointer(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.pc, CALLER);
	CHECK(n.u.flags & FUSEE_GUESSED);
	/* the first and the last bytes of a page whose neighbours are missing */
	write_function(&w);
	w.code[0] = 0xc3;
	n = start(&w, CODE, STACK + 80, 1);
	CHECK_INT(fusee_step_framepointer(&n.u), FUSEE_NEXT);
	CHECK(n.u.pc == CALLER && !(n.u.flags & FUSEE_GUESSED));
	w.code[60] = 0xc3;
	n = start(&w, CODE + 60, STACK + 80, 1);
	CHECK_INT(fusee_step_framepointer(&n.u), FUSEE_NEXT);
	CHECK(n.u.pc == CALLER && !(n.u.flags & FUSEE_GUESSED));
}

static struct fusee_native at_code(struct world *w, const char *code, size_t len, int pc,
				   __u32 flags)
{
	struct fusee_native n;

	write_function(w);
	memset(w->code, 0x90, sizeof(w->code));
	memcpy(w->code + 16, code, len);
	n = start(w, CODE + 16 + (__u64)pc, STACK + 80, STACK + 160);
	n.u.flags = flags;
	w->stack[20] = STACK + 240; /* the caller's frame */
	w->stack[21] = CALLER;
	return n;
}

/* Where the first instructions are another's, or rbp is pushed for another reason. */
TEST(entries)
{
	static struct world w;
	const struct {
		const char *code;
		size_t len;
		int pc;
		__u32 flags;
		bool at_sp, guessed;
	} cases[] = {
		{"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5", 8, 0, FUSEE_PC_EXACT, true, false},
		{"\xf3\x0f\x1e\xfa\x31\xc0", 6, 0, FUSEE_PC_EXACT, true, true},
		{"\x55\x48\x8b\xec", 4, 0, FUSEE_PC_EXACT, true, false},
		{"\x55\x53", 2, 0, FUSEE_PC_EXACT, true, true},
		{"\xc2\x08\x00", 3, 0, FUSEE_PC_EXACT, true, false},
		{"\xf3\xc3", 2, 0, FUSEE_PC_EXACT, true, false},
		{"\xc9\xc3", 2, 0, FUSEE_PC_EXACT, false, false},
		/* a leaf's system call: its own ret, or another function's entry */
		{"\x0f\x05\xc3", 3, 2, FUSEE_FIRST, true, false},
		{"\x0f\x05\x55\x48\x89\xe5", 6, 2, FUSEE_FIRST, false, true},
		{"\x0f\x05\x90\x90", 4, 2, FUSEE_FIRST, false, true},
		/* push %r13, which ends like push %rbp */
		{"\x41\x55\x48\x89\xe5", 5, 2, FUSEE_PC_EXACT, false, true},
		{"\x41\x55\x48\x89\xe5", 5, 5, FUSEE_PC_EXACT, false, true},
		/* a caller's next instruction says nothing new, and is not read */
		{"\xe8\x00\x00\x00\x00\x55\x48\x89\xe5", 9, 5, 0, false, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fusee_native n = at_code(&w, cases[i].code, cases[i].len, cases[i].pc,
						cases[i].flags);

		fprintf(stderr, "# case %zu\n", i);
		CHECK_INT(fusee_step_framepointer(&n.u), FUSEE_NEXT);
		CHECK_INT(n.u.pc, CALLER);
		CHECK_INT(n.u.sp, cases[i].at_sp ? STACK + 88 : STACK + 176);
		CHECK_INT(!!(n.u.flags & FUSEE_GUESSED), cases[i].guessed);
	}
}

/* A chain of frames, each read failed in turn: the true frames up to there. */
TEST(chains)
{
	static struct world w;

	for (int fail = 0; fail <= 5; fail++) {
		struct fusee_native n;
		int r, frames = 0;

		write_function(&w);
		for (int i = 0; i < 4; i++) {
			w.stack[20 + 10 * i] = i < 3 ? STACK + 8 * (30 + 10 * (__u64)i) : 0;
			w.stack[21 + 10 * i] = CALLER + 16 * (__u64)i;
		}
		w.fail = fail;
		n = start(&w, CALLER, STACK + 88, STACK + 160);
		n.u.flags = 0;
		while ((r = fusee_step_framepointer(&n.u)) == FUSEE_NEXT) {
			CHECK_INT(n.u.pc, CALLER + 16 * (__u64)frames++);
			CHECK(n.u.flags & FUSEE_GUESSED); /* callers may leave rbp alone */
			n.u.flags = 0;
		}
		CHECK_INT(frames, fail && fail < 5 ? fail - 1 : 4);
		CHECK_INT(n.u.error, fail && fail < 5 ? FRAMEPOINTER_REASON_UNREADABLE
						      : FRAMEPOINTER_REASON_END);
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
