/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/dwarf
/* The step over hand-made tables and recorded memory: right frames, and with any read failed a
 * reason, never a wrong frame. */
#include "test.h"

#include <fusee/unwinder.bpf.h>

#include "reasons.h"
#include "table.h"

int fusee_step_dwarf(struct fusee_unwind *u);

#define LO 0x10000u
#define STACK 0x7f0000000000ull
#define WORDS 512

struct world {
	__u32 table[256];
	__u64 stack[WORDS];
	int reads, fail; /* the fail-th read fails; 0: none */
};

struct row {
	__u32 at, rule;
};

/* A table of 64 KiB of text from LO on. */
static void make_table(struct world *w, const struct row *rows, int n, const __u32 *specials,
		       int nspecials)
{
	__u32 *t = w->table, index = DWARF_HEADER_WORDS, at;

	memset(t, 0, sizeof(w->table));
	t[DWARF_MAGIC] = DWARF_TABLE_MAGIC;
	t[DWARF_LO] = LO;
	t[DWARF_BLOCKS] = 16; /* 4 KiB of text */
	t[DWARF_INDEX_AT] = index;
	t[DWARF_ROWS_AT] = index + 16;
	t[DWARF_ROWS] = (__u32)n;
	t[DWARF_SPECIALS_AT] = index + 16 + (__u32)n;
	t[DWARF_SPECIALS] = (__u32)nspecials;
	t[DWARF_MACHINE] = 62;
	for (__u32 b = 0; b < 16; b++) {
		__u32 first = 0, count = 0;

		for (int i = 0; i < n; i++) {
			first += rows[i].at - LO < b * 256;
			count += (rows[i].at - LO) / 256 == b;
		}
		t[index + b] = first << 8 | count;
	}
	for (int i = 0; i < n; i++)
		t[index + 16 + (__u32)i] = rows[i].rule << 16 | (rows[i].at & 0xffff);
	at = t[DWARF_SPECIALS_AT];
	memcpy(&t[at], specials, (size_t)nspecials * DWARF_SPECIAL_WORDS * 4);
}

static int read_world(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct world *w = n->arg;

	if (++w->reads == w->fail || addr < STACK || addr + len > STACK + sizeof(w->stack))
		return -1;
	memcpy(dst, (char *)w->stack + (addr - STACK), len);
	return 0;
}

static struct fusee_native start(struct world *w, __u64 pc, __u64 sp, __u64 fp)
{
	return (struct fusee_native){
		.u = {.pc = pc,
		      .sp = sp,
		      .fp = fp,
		      .offset = pc,
		      .flags = FUSEE_PC_EXACT,
		      .machine = 62,
		      .valid_regs = 0xffff & ~(1u << 6 | 1u << 7),
		      .slab_words = 256},
		.slab = w->table,
		.read = read_world,
		.arg = w,
	};
}

/* Walks to the end; the pcs in pcs. Returns how many; *n is as the last step set it. */
static int walk(struct fusee_native *n, __u64 *pcs, int max)
{
	int count = 0, r;

	do {
		pcs[count++] = n->u.pc;
		n->u.offset = n->u.pc;
		r = fusee_step_dwarf(&n->u);
	} while (r == FUSEE_NEXT && count < max);
	CHECK(count < max);
	return count;
}

/* The walk with each read failed in turn: a named reason and true frames only. */
static void fail_each(struct world *w, __u64 pc, __u64 sp, __u64 fp, const __u64 *truth, int ntruth)
{
	__u64 pcs[64];
	struct fusee_native n;
	int total, count;

	w->reads = w->fail = 0;
	n = start(w, pc, sp, fp);
	count = walk(&n, pcs, 64);
	CHECK_INT(count, ntruth);
	CHECK(!memcmp(pcs, truth, (size_t)count * sizeof(*pcs)));
	CHECK_INT(n.u.error, 0);
	total = w->reads;
	CHECK(total > 0);
	for (int f = 1; f <= total; f++) {
		w->reads = 0;
		w->fail = f;
		n = start(w, pc, sp, fp);
		count = walk(&n, pcs, 64);
		CHECK(count < ntruth);
		CHECK(!memcmp(pcs, truth, (size_t)count * sizeof(*pcs)));
		CHECK_INT(n.u.error, DWARF_REASON_STACK_UNREADABLE);
	}
	w->fail = 0;
}

static const __u32 end_special[DWARF_SPECIAL_WORDS] = {DWARF_END};

TEST(plain_rules)
{
	static struct world w;
	const struct row rows[] = {
		{0x10000, DWARF_RULE_SPECIAL(0)}, /* start: the end */
		{0x10100, DWARF_RULE_SP(2, 0)},   /* outer: CFA = sp + 16 */
		{0x10200, DWARF_RULE_FP(2, 1)},   /* middle: push rbp; CFA = fp + 16 */
		{0x10300, DWARF_RULE_SP(4, 2)},   /* leaf: rbp at CFA - 24 */
		{0x10380, DWARF_RULE_NONE},
	};
	const __u64 truth[] = {0x10350, 0x10220, 0x10120, 0x10020};
	__u64 sp = STACK + 64;

	make_table(&w, rows, 5, end_special, 1);
	/* leaf's frame: CFA = sp + 32, return address below it, rbp at CFA - 24 */
	w.stack[8 + 3] = 0x10220;
	w.stack[8 + 1] = STACK + 8 * 20;
	/* middle: fp = STACK + 160: saved fp, return address; CFA = STACK + 176 */
	w.stack[20] = 0x77;
	w.stack[21] = 0x10120;
	/* outer: sp = STACK + 176, CFA + 16 */
	w.stack[23] = 0x10020;
	fail_each(&w, 0x10350, sp, 0xdead, truth, 4);
}

TEST(no_row_no_table_and_beyond_pass)
{
	static struct world w;
	const struct row rows[] = {{0x10100, DWARF_RULE_SP(1, 0)}, {0x10110, DWARF_RULE_NONE}};
	struct fusee_native n;

	make_table(&w, rows, 2, end_special, 1);
	for (__u64 pc = 0x0ff00; pc < 0x11200; pc += 0x10) {
		bool covered = pc >= 0x10100 && pc < 0x10110;

		n = start(&w, pc, STACK, 0);
		w.stack[0] = 0x1234;
		CHECK_INT(fusee_step_dwarf(&n.u), covered ? FUSEE_NEXT : FUSEE_PASS);
	}
	n = start(&w, 0x10100, STACK, 0);
	n.u.slab_words = 0;
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_PASS);
}

/* A return address just behind a call at the end of a function belongs to that function. */
TEST(callers_are_looked_up_inside_their_call)
{
	static struct world w;
	const struct row rows[] = {{0x10100, DWARF_RULE_SP(1, 0)},
				   {0x10110, DWARF_RULE_SPECIAL(0)}};
	struct fusee_native n;

	make_table(&w, rows, 2, end_special, 1);
	w.stack[0] = 0x42;
	n = start(&w, 0x10110, STACK, 0);
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_STOP);
	n = start(&w, 0x10110, STACK, 0);
	n.u.flags = 0;
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.pc, 0x42);
}

TEST(plt_by_place_in_its_entry)
{
	static struct world w;
	const __u32 specials[] = {DWARF_END, 0, 0, 0, DWARF_PLT, 0, 0, 11};
	const struct row rows[] = {{0x10000, DWARF_RULE_SPECIAL(0)},
				   {0x10100, DWARF_RULE_SPECIAL(1)}};
	const __u64 before[] = {0x10104, 0x10020}, behind[] = {0x1010b, 0x10020};

	make_table(&w, rows, 2, specials, 2);
	w.stack[8] = 0x10020;
	fail_each(&w, 0x10104, STACK + 64, 0, before, 2);
	w.stack[8] = 5; /* the index that was pushed */
	w.stack[9] = 0x10020;
	fail_each(&w, 0x1010b, STACK + 64, 0, behind, 2);
}

TEST(drap_and_registers)
{
	static struct world w;
	const __u32 specials[] = {
		DWARF_END,
		0,
		0,
		0,
		/* CFA = *(fp - 8); rbp at fp + 0 */
		DWARF_DEREF | 6u << 8 | (__u32)DWARF_FP_AT_FP << 16,
		(__u32)-8,
		0,
		0,
		/* CFA = r10 + 0, rbp at CFA - 16 */
		DWARF_REG | 10u << 8 | (__u32)DWARF_FP_SAVED << 16,
		0,
		(__u32)-16,
		0,
		/* return address in rdi (vfork), CFA = sp */
		DWARF_REG | 7u << 8 | (__u32)DWARF_RA_IN_REG << 16,
		0,
		0,
		5,
	};
	const struct row rows[] = {{0x10000, DWARF_RULE_SPECIAL(0)},
				   {0x10100, DWARF_RULE_SPECIAL(1)},
				   {0x10200, DWARF_RULE_SPECIAL(2)},
				   {0x10300, DWARF_RULE_SPECIAL(3)}};
	const __u64 drap[] = {0x10150, 0x10020};
	struct fusee_native n;

	make_table(&w, rows, 4, specials, 4);
	w.stack[16] = 0x5555;         /* saved rbp at fp */
	w.stack[15] = STACK + 8 * 30; /* DRAP: the CFA */
	w.stack[29] = 0x10020;
	fail_each(&w, 0x10150, STACK + 64, STACK + 8 * 16, drap, 2);

	n = start(&w, 0x10250, STACK + 64, 1);
	n.u.regs[10] = STACK + 8 * 30;
	w.stack[28] = 0x99;
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK(n.u.pc == 0x10020 && n.u.fp == 0x99 && n.u.sp == STACK + 240 && !n.u.valid_regs);
	n = start(&w, 0x10250, STACK + 64, 1);
	n.u.valid_regs = 0; /* a caller's r10 is not known */
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_STOP);
	CHECK_INT(n.u.error, DWARF_REASON_REGISTER);

	n = start(&w, 0x10350, STACK + 64, 1);
	n.u.regs[5] = 0x10020;
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK(n.u.pc == 0x10020 && n.u.sp == STACK + 64);
}

/* A frame whose caller's sp may be another than its CFA: a rule by sp does not follow, by rbp does.
 */
TEST(moved_sp)
{
	static struct world w;
	const __u32 specials[] = {DWARF_END,
				  0,
				  0,
				  0,
				  DWARF_REG | 6u << 8 | (DWARF_FP_SAVED | DWARF_SP_MOVED) << 16,
				  16,
				  (__u32)-16,
				  0};
	const struct row rows[] = {{0x10000, DWARF_RULE_SPECIAL(0)},
				   {0x10100, DWARF_RULE_SPECIAL(1)},
				   {0x10200, DWARF_RULE_SP(2, 0)},
				   {0x10300, DWARF_RULE_FP(2, 1)}};
	struct fusee_native n;

	make_table(&w, rows, 4, specials, 2);
	w.stack[16] = STACK + 8 * 30;
	w.stack[30] = STACK + 8 * 40;
	w.stack[31] = 0x10220;
	for (int by_sp = 0; by_sp < 2; by_sp++) {
		w.stack[17] = by_sp ? 0x10220 : 0x10320;
		n = start(&w, 0x10150, STACK + 64, STACK + 8 * 16);
		CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
		CHECK(n.u.fp == STACK + 8 * 30 && n.u.sp == STACK + 8 * 18);
		n.u.offset = n.u.pc;
		CHECK_INT(fusee_step_dwarf(&n.u), by_sp ? FUSEE_STOP : FUSEE_NEXT);
		CHECK_INT(n.u.error, by_sp ? DWARF_REASON_REGISTER : 0);
	}
}

/* gcc's way out of an aligned frame: pop %r10; pop %rbp; lea -8(%r10),%rsp; ret. One row says over
 * all of it that the CFA is r10 and rbp at *rbp, where behind the pop rbp is the caller's. */
TEST(drap_epilogue)
{
	static struct world w;
	const __u32 special[] = {
		DWARF_REG | 10u << 8 | (__u32)DWARF_FP_AT_FP << 16, /* CFA = r10, rbp at *rbp */
		0,
		0,
		0,
	};
	const struct row row = {0x10100, DWARF_RULE_SPECIAL(0)};
	const struct {
		__u64 fp, caller_fp;
	} cases[] = {
		{STACK + 8 * 16, 0x5555},           /* before the pop */
		{STACK + 8 * 8, 0x6666},            /* the same, nothing else pushed */
		{STACK + 8 * 40, STACK + 8 * 40},   /* behind it: a frame further up */
		{STACK + 8 * 30, STACK + 8 * 30},   /* right there where this one ends */
		{1, 1},                             /* a caller without frame pointers */
		{STACK + 8 * 600, STACK + 8 * 600}, /* not readable, and not read */
		{STACK + 8 * 7, STACK + 8 * 7},     /* below sp: free to be written over */
		{STACK + 8 * 30 - 4, STACK + 8 * 30 - 4},
	};

	make_table(&w, &row, 1, special, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fusee_native n = start(&w, 0x10150, STACK + 8 * 8, cases[i].fp);

		n.u.regs[10] = STACK + 8 * 30;
		w.stack[29] = 0x10020;
		w.stack[16] = 0x5555;
		w.stack[8] = 0x6666;
		w.stack[40] = 0x7777; /* what a caller's frame has saved is not this frame.s */
		CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
		CHECK(n.u.pc == 0x10020 && n.u.sp == STACK + 8 * 30);
		CHECK_INT(n.u.fp, cases[i].caller_fp);
	}
}

TEST(signal_frames_bring_all_registers)
{
	static struct world w;
	const __u32 specials[] = {DWARF_END, 0, 0, 0, DWARF_SIGNAL, 0, 0, 0};
	const struct row rows[] = {{0x10000, DWARF_RULE_SPECIAL(0)},
				   {0x10100, DWARF_RULE_SPECIAL(1)}};
	const __u64 truth[] = {0x10101, 0x10020};
	struct fusee_native n;

	make_table(&w, rows, 2, specials, 2);
	for (int i = 0; i < 17; i++) /* uc_mcontext.gregs at +40 */
		w.stack[8 + 5 + i] = 100 + (__u64)i;
	w.stack[8 + 5 + 15] = STACK + 8; /* on another stack: below */
	w.stack[8 + 5 + 16] = 0x10020;
	fail_each(&w, 0x10101, STACK + 64, 0, truth, 2);
	n = start(&w, 0x10101, STACK + 64, 0);
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.regs[8], 100);  /* r8 */
	CHECK_INT(n.u.regs[15], 107); /* r15 */
	CHECK_INT(n.u.regs[5], 108);  /* rdi */
	CHECK_INT(n.u.fp, 110);
	CHECK_INT(n.u.regs[3], 111); /* rbx */
	CHECK_INT(n.u.regs[0], 113); /* rax */
	CHECK(n.u.flags & FUSEE_PC_EXACT && n.u.flags & FUSEE_SIGNAL);
	CHECK_INT(n.u.sp, STACK + 8);
}

/* g is at the thread pointer - 8, and what it leads to is the goroutine's place. */
static struct fusee_native start_grown(struct world *w)
{
	static const __u32 specials[] = {DWARF_GO_GROWS, -8u, 48 | 184 << 8,
					 64 | 56 << 8 | 96 << 16};
	const struct row rows[] = {{0x10000, DWARF_RULE_SPECIAL(0)}};
	const __u64 g = STACK + 8 * 100, m = STACK + 8 * 200, place = STACK + 8 * 300;
	struct fusee_native n;
	__s32 distance;

	make_table(w, rows, 1, specials, 1);
	w->reads = w->fail = 0;
	w->stack[9] = g;
	w->stack[100 + 6] = m;
	w->stack[200 + 23] = place;
	w->stack[300 + 8] = STACK + 8 * 400;
	w->stack[300 + 7] = STACK + 8 * 50;
	w->stack[300 + 12] = STACK + 8 * 60;
	n = start(w, 0x10020, STACK + 8, 0);
	n.u.tls = STACK + 8 * 10;
	n.u.flags = FUSEE_FP_LOST;
	/* the code that called lies in the same memory, and calls a little before 0x10020 */
	distance = (__s32)(0x10000 - (STACK + 8 * 400));
	memcpy((char *)w->stack + 8 * 400 - 4, &distance, 4);
	return n;
}

TEST(a_goroutine_whose_stack_grows_is_found)
{
	static struct world w;
	struct fusee_native n = start_grown(&w);

	/* code that is 2 GiB away cannot be called: it seems to lie near, at the same distance */
	n.u.pc = STACK + 8 * 400 + (__u64)(__s64)(__s32)(0x10000 - (STACK + 8 * 400)) + 32;
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK(n.u.pc == STACK + 8 * 400 && n.u.sp == STACK + 8 * 50 && n.u.fp == STACK + 8 * 60);
	CHECK_INT(n.u.flags, 0);
	CHECK_INT(n.u.valid_regs, 0);
}

TEST(a_goroutine_is_not_guessed)
{
	static struct world w;
	struct fusee_native n;
	__u64 pc;

	for (int i = 0; i < 13; i++) {
		n = start_grown(&w);
		pc = STACK + 8 * 400 + (__u64)(__s64)(__s32)(0x10000 - (STACK + 8 * 400)) + 32;
		n.u.pc = pc;
		w.fail = i < 7 ? i + 1 : 0;
		if (i == 7)
			n.u.tls = 0;
		if (i == 8)
			w.stack[200 + 23] = 0; /* no goroutine */
		if (i == 9)
			w.stack[200 + 23] = STACK + 8 * 100; /* it is back already */
		if (i == 10)
			n.u.pc = pc + 2 * DWARF_GO_NEAR; /* it called something else */
		if (i == 11)
			n.u.pc = pc - 2 * DWARF_GO_NEAR;
		CHECK_INT(fusee_step_dwarf(&n.u), i < 12 ? FUSEE_STOP : FUSEE_NEXT);
		if (i < 12)
			CHECK_INT(n.u.error, DWARF_REASON_SWITCH);
		if (i < 10)
			CHECK(n.u.pc == pc && n.u.sp == STACK + 8);
	}
}

TEST(a_stack_that_leads_down_or_nowhere_ends)
{
	static struct world w;
	const __u32 specials[] = {
		DWARF_REG | 6u << 8, 0, 0, 0, DWARF_EXPRESSION, 0, 0, 0, 99, 0, 0, 0};
	const struct row rows[] = {{0x10000, DWARF_RULE_SPECIAL(0)},
				   {0x10100, DWARF_RULE_FP(1, 0)},
				   {0x10200, DWARF_RULE_SPECIAL(1)},
				   {0x10300, DWARF_RULE_SPECIAL(2)},
				   {0x10400, DWARF_RULE_SPECIAL(77)}};
	const struct {
		__u64 pc, fp;
		__u32 reason;
	} cases[] = {
		{0x10001, STACK + 8, DWARF_REASON_NO_PROGRESS},
		{0x10101, STACK + 8, DWARF_REASON_NO_PROGRESS},
		{0x10101, ~0ull - 4, DWARF_REASON_NO_PROGRESS},
		{0x10201, 0, DWARF_REASON_EXPRESSION},
		{0x10301, 0, DWARF_REASON_TABLE},
		{0x10401, 0, DWARF_REASON_TABLE},
	};

	make_table(&w, rows, 5, specials, 3);
	w.stack[0] = w.stack[1] = 0x10101;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fusee_native n = start(&w, cases[i].pc, STACK + 64, cases[i].fp);

		CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_STOP);
		CHECK_INT(n.u.error, cases[i].reason);
		CHECK_INT(!!(n.u.flags & FUSEE_INEXPRESSIBLE),
			  cases[i].reason == DWARF_REASON_EXPRESSION);
	}
}

/* At LO CFA = sp + 64. rbx is saved at CFA - 16, r12 at fp - 8, r13 is not known, r14 is the
 * caller's, r15 is saved at CFA - 48. */
static void make_saves(struct world *w)
{
	static const struct row rows[] = {{LO, DWARF_RULE_SP(8, 0)}};
	enum { SAVES = 128, ROWS = DWARF_HEADER_WORDS + 1, PATTERNS = ROWS + 1 };
	__u32 *t = w->table + SAVES;

	make_table(w, rows, 1, end_special, 1);
	w->table[DWARF_SAVES_AT] = SAVES;
	t[DWARF_MAGIC] = DWARF_TABLE_MAGIC;
	t[DWARF_LO] = LO;
	t[DWARF_BLOCKS] = 1;
	t[DWARF_INDEX_AT] = DWARF_HEADER_WORDS;
	t[DWARF_ROWS_AT] = ROWS;
	t[DWARF_ROWS] = 1;
	t[DWARF_SHIFT] = DWARF_SAVES_SHIFT;
	t[DWARF_SPECIALS_AT] = PATTERNS;
	t[DWARF_SPECIALS] = 2;
	t[DWARF_HEADER_WORDS] = 0 << 8 | 1;
	t[ROWS] = 2u << 16;
	t[PATTERNS + 2] = 3 | 2 << 8 | 1 << 16;
	t[PATTERNS + 3] = 7 | DWARF_BY_FP(1);
	for (int i = 0; i < WORDS; i++)
		w->stack[i] = 1000 + (__u64)i;
}

static struct fusee_native follow(struct world *w)
{
	struct fusee_native n = start(w, LO + 4, STACK + 80, STACK + 112);

	for (int i = 0; i < 16; i++)
		n.u.regs[i] = (__u64)i;
	n.u.flags |= FUSEE_FOLLOW;
	w->reads = 0;
	return n;
}

TEST(saved_registers)
{
	const __u64 rbx = 1ull << 3, r12 = 1ull << 12, r14 = 1ull << 14, r15 = 1ull << 15;
	static struct world w;
	struct fusee_native n;
	__u64 value;

	make_saves(&w);
	w.fail = 0;
	n = follow(&w);
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.sp, STACK + 144);
	CHECK_INT(n.u.valid_regs, rbx | r12 | r14 | r15);
	CHECK(n.u.regs[3] == 1016 && n.u.regs[12] == 1013 && n.u.regs[14] == 14);
	CHECK(n.u.regs[15] == 1012);
	CHECK(!fusee_register(&n.u, 3, &value) && value == 1016);
	CHECK(fusee_register(&n.u, 13, &value) && fusee_register(&n.u, 0, &value));
	/* each read failed in turn, behind that of the return address: not known, never stale */
	for (int i = 0; i < 3; i++) {
		w.fail = 2 + i;
		n = follow(&w);
		CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
		CHECK_INT(n.u.valid_regs, (rbx | r12 | r14 | r15) & ~(i == 0   ? rbx
								      : i == 1 ? r12
									       : r15));
	}
	w.fail = 0;
	/* fp leads out of the frame: it was popped, and so was r12 */
	n = follow(&w);
	n.u.fp = STACK + 400;
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK(n.u.valid_regs & r12 && n.u.regs[12] == 12);
	n = follow(&w);
	n.u.flags |= FUSEE_FP_LOST;
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.valid_regs, rbx | r14 | r15);
	/* without saves nothing is known, nor where nobody asks */
	n = follow(&w);
	n.u.flags &= ~(__u32)FUSEE_FOLLOW;
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.valid_regs, 0);
	w.table[DWARF_SAVES_AT] = 0;
	n = follow(&w);
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_NEXT);
	CHECK_INT(n.u.valid_regs, 0);
}

TEST(cfa_only)
{
	static struct world w;
	struct fusee_native n;

	make_saves(&w);
	n = follow(&w);
	n.u.flags |= FUSEE_CFA_ONLY;
	CHECK_INT(fusee_step_dwarf(&n.u), FUSEE_STOP);
	CHECK(n.u.cfa == STACK + 144 && n.u.sp == STACK + 80 && n.u.pc == LO + 4);
	CHECK(n.u.valid_regs >> 13 & 1 && n.u.regs[3] == 3 && n.u.flags & FUSEE_PC_EXACT);
}

/* Tables of noise: any answer but a crash, a read outside, or a stop with no reason that was not an
 * END. */
TEST(lying_tables)
{
	static struct world w;
	unsigned long next = 0, stop = 0, pass = 0;

	srand(4);
	for (int i = 0; i < 300000; i++) {
		struct fusee_native n;
		int r;

		if (i % 16 == 0)
			for (int k = 0; k < 256; k++)
				w.table[k] = rand() % 2 ? (__u32)rand() % 300 : (__u32)rand() << 1;
		w.table[DWARF_MAGIC] = DWARF_TABLE_MAGIC;
		w.table[DWARF_LO] = LO;
		w.table[DWARF_LO_HIGH] = 0;
		n = start(&w, LO + (__u64)(rand() % 4096), STACK + 8 * (__u64)(rand() % 300),
			  STACK + 8 * (__u64)(rand() % 300));
		n.u.slab_words = (__u64)rand() % 257;
		n.u.flags |= rand() % 2 ? FUSEE_FOLLOW : 0;
		r = fusee_step_dwarf(&n.u);
		next += r == FUSEE_NEXT;
		stop += r == FUSEE_STOP;
		pass += r == FUSEE_PASS;
		CHECK(r == FUSEE_NEXT || r == FUSEE_STOP || r == FUSEE_PASS);
		CHECK(n.u.error < DWARF_REASONS);
	}
	fprintf(stderr, "# %lu next, %lu stop, %lu pass\n", next, stop, pass);
	CHECK(next && stop && pass);
}
