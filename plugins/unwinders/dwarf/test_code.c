/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/dwarf
/* Rows by following instructions: small functions in machine code. */
#include "code/code.h"
#include "code/data.h"
#include <fusee/insn.h>
#include "test.h"
#include "cfi/x86_64.h"

#define TEXT 0x1000u
#define SP DWARF_RULE_SP
#define FP DWARF_RULE_FP
#define NONE DWARF_RULE_NONE

struct expected {
	uint32_t at, rule;
};

static struct table_build build;
static struct rows known;
static struct sheet sheet;
static uint32_t *words;
static uint64_t n_words;
static struct code_entries sure, maybe;
static struct code_bytes table; /* .rodata */
static struct code_entries parts, noreturn;
static struct code_data pointers;
static int symbols = 1;

static void read_code(const uint8_t *code, size_t n, int paths_only)
{
	struct code c = {.bytes = code,
			 .len = n,
			 .vaddr = TEXT,
			 .known = &known,
			 .data = table,
			 .parts = parts,
			 .noreturn = noreturn,
			 .paths_only = paths_only,
			 .symbols = symbols,
			 .pointers = &pointers};

	sheet_fini(&sheet);
	table_build_fini(&build);
	free(words);
	words = NULL;
	CHECK_INT(table_build_init(&build), 0);
	CHECK_INT(code_read(&build, &c, &sure, &maybe, &sheet.rules), 0);
	if (sheet.rules.n)
		CHECK_INT(table_pack(&build, &sheet, X86_64_MACHINE, &words, &n_words), 0);
	code_entries_fini(&sure);
	code_entries_fini(&maybe);
	code_entries_fini(&parts);
	code_entries_fini(&noreturn);
}

static void follow(const uint8_t *code, size_t n)
{
	read_code(code, n, 1);
}

static void begins(uint32_t at)
{
	CHECK_INT(code_entries_add(&sure, TEXT + at), 0);
}

/* At the first byte. */
static void function(const uint8_t *code, size_t n)
{
	begins(0);
	follow(code, n);
}

static void follow_from(const uint8_t *code, size_t n, const uint32_t *at, size_t n_at)
{
	for (size_t i = 0; i < n_at; i++)
		begins(at[i]);
	follow(code, n);
}

/* An array with functions that begin at these places. */
#define FROM(code, ...)                                                  \
	follow_from(code, sizeof(code), (const uint32_t[]){__VA_ARGS__}, \
		    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* A pointer leads there. */
static void perhaps(uint32_t at)
{
	CHECK_INT(code_entries_add(&maybe, TEXT + at), 0);
}

static uint32_t rule(uint32_t at)
{
	const uint32_t *special;

	return words ? table_lookup(words, n_words, TEXT + at, &special) : DWARF_RULE_NONE;
}

/* The row says where sp is, and that the caller's rbp is not known. */
static int fp_is_unknown(uint32_t at)
{
	const uint32_t *special = NULL;

	return words && (table_lookup(words, n_words, TEXT + at, &special) & 0xc000) == 0xc000 &&
	       special && (special[0] & 0xff) == DWARF_REG && special[0] >> 16 & DWARF_FP_UNKNOWN;
}

/* {place, rule} of each. */
static void check_rules(int line, const struct expected *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rule(all[i].at) != all[i].rule)
			test_fail(__FILE__, line, "the rule at %u is %#x, expected %#x", all[i].at,
				  rule(all[i].at), all[i].rule);
}

#define RULES(...)                                                    \
	check_rules(__LINE__, (const struct expected[]){__VA_ARGS__}, \
		    sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected))
#define FUNCTION(...) \
	function((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
#define FOLLOW(...) follow((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

TEST(lengths)
{
	static const struct {
		uint8_t code[12], len;
	} known_lengths[] = {
		{{0x90}, 1},
		{{0x48, 0x89, 0xe5}, 3},
		{{0x48, 0x8b, 0x84, 0x24, 1, 0, 0, 0}, 8}, /* SIB, disp32 */
		{{0x8b, 0x04, 0x25, 1, 0, 0, 0}, 7},       /* no base */
		{{0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, 10},
		{{0x66, 0xb8, 1, 2}, 4},
		{{0xf6, 0xc1, 1}, 3}, /* test: an immediate */
		{{0xf6, 0xd1}, 2},    /* not: none */
		{{0x0f, 0xba, 0xe1, 3}, 4},
		{{0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8}, 6},
		{{0xc5, 0xf8, 0x77}, 3},                            /* vzeroupper */
		{{0xc4, 0xe3, 0x7d, 0x18, 0xc1, 1}, 6},             /* vinsertf128 */
		{{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x44, 0x24, 1}, 8}, /* vmovups, EVEX */
		{{0x2e, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 10},
	};

	for (size_t i = 0; i < sizeof(known_lengths) / sizeof(known_lengths[0]); i++) {
		struct insn in;
		size_t len = known_lengths[i].len;

		CHECK_INT(fusee_insn_decode(known_lengths[i].code, sizeof(known_lengths[i].code),
					    &in),
			  0);
		CHECK_INT(in.len, len);
		for (size_t n = 0; n < len; n++) /* truncated */
			CHECK_INT(fusee_insn_decode(known_lengths[i].code, n, &in), -1);
	}
}

TEST(pushes_and_pops)
{
	/* push %r13; push %rbp; sub $24,%rsp; nop; add $24,%rsp; pop %rbp; pop %r13; ret */
	FUNCTION(0x41, 0x55, 0x55, 0x48, 0x83, 0xec, 24, 0x90, 0x48, 0x83, 0xc4, 24, 0x5d, 0x41,
		 0x5d, 0xc3, 0xcc);
	RULES({0, SP(1, 0)}, {2, SP(2, 0)}, {3, SP(3, 2)}, {7, SP(6, 2)}, {12, SP(3, 2)},
	      {13, SP(2, 0)}, {15, SP(1, 0)});
	CHECK_INT(rule(16), NONE); /* int3: never reached */
}

TEST(frame_pointers)
{
	/* push %rbp; mov %rsp,%rbp; and $-32,%rsp; sub %rax,%rsp; nop; leave; ret */
	FUNCTION(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x29, 0xc4, 0x90, 0xc9,
		 0xc3);
	RULES({1, SP(2, 1)}, {4, FP(2, 1)}, {11, FP(2, 1)}, {13, SP(1, 0)});
}

TEST(frame_pointers_that_are_lost)
{
	/* xor %ebp,%ebp; sub $n,%rsp; push %rbp; call 20; pop %rbp; nop; ud2; ret */
	uint8_t code[] = {0x31, 0xed, 0x48, 0x81, 0xec, 0,    0,    0,    0, 0x55, 0xe8,
			  5,    0,    0,    0,    0x5d, 0x90, 0x0f, 0x0b, 0, 0xc3};

	for (unsigned int words_below = 1; words_below < 66; words_below++) {
		code[5] = (uint8_t)(8 * words_below);
		code[6] = (uint8_t)(8 * words_below >> 8);
		FROM(code, 0, 20);
		CHECK_INT(fp_is_unknown(10), 1);
		CHECK_INT(fp_is_unknown(16), 1);
	}
}

TEST(frame_pointers_whose_slot_is_popped)
{
	/* push %rbp; mov %rsp,%rbp; add $8,%rsp; nop; ud2 */
	FUNCTION(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xc4, 8, 0x90, 0x0f, 0x0b);
	CHECK_INT(fp_is_unknown(8), 1);
	/* and with a return: rbp is not the caller's */
	FUNCTION(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xc4, 8, 0x90, 0xc3);
	CHECK_INT(rule(0), NONE);
	/* mov %rbp,-8(%rsp); xor %ebp,%ebp; push %rbx; nop; ud2 */
	FUNCTION(0x48, 0x89, 0x6c, 0x24, 0xf8, 0x31, 0xed, 0x53, 0x90, 0x0f, 0x0b);
	CHECK_INT(rule(5), SP(1, 1));
	CHECK_INT(fp_is_unknown(8), 1);
	/* the same, with a call of 15: its row is read while the callee runs */
	FUNCTION(0x48, 0x89, 0x6c, 0x24, 0xf8, 0x31, 0xed, 0xe8, 3, 0, 0, 0, 0x90, 0x0f, 0x0b,
		 0xc3);
	CHECK_INT(rule(5), SP(1, 1));
	CHECK_INT(fp_is_unknown(7), 1);
	/* mov %rbp,-16(%rsp); xor %ebp,%ebp; sub $8,%rsp; nop; ud2: it is still there */
	FUNCTION(0x48, 0x89, 0x6c, 0x24, 0xf0, 0x31, 0xed, 0x48, 0x83, 0xec, 8, 0x90, 0x0f, 0x0b);
	CHECK_INT(rule(11), SP(2, 2));
}

/* As code by hand may have it: a word that is dropped is not a frame pointer that comes back. */
TEST(frame_pointers_that_are_dropped)
{
	/* push %rbp; xor %ebp,%ebp; add $8,%rsp; nop; ud2 */
	FUNCTION(0x55, 0x31, 0xed, 0x48, 0x83, 0xc4, 8, 0x90, 0x0f, 0x0b);
	CHECK_INT(rule(3), SP(2, 1));
	CHECK_INT(fp_is_unknown(7), 1);
	/* the same with pop %rcx */
	FUNCTION(0x55, 0x31, 0xed, 0x59, 0x90, 0xc3);
	CHECK_INT(fp_is_unknown(4), 1);
	/* push %rbp; nop; pop %rcx; nop; ret: rbp has not changed */
	FUNCTION(0x55, 0x90, 0x59, 0x90, 0xc3);
	RULES({1, SP(2, 1)}, {3, SP(1, 0)});
	/* push %rbp; xor %ebp,%ebp; mov (%rsp),%rbp; add $8,%rsp; nop; ret: it comes back */
	FUNCTION(0x55, 0x31, 0xed, 0x48, 0x8b, 0x2c, 0x24, 0x48, 0x83, 0xc4, 8, 0x90, 0xc3);
	RULES({7, SP(2, 1)}, {11, SP(1, 0)});
	/* push %rbx; push %rbp; xor %ebp,%ebp; mov 8(%rsp),%rbp; add $16,%rsp; nop; ret: rbx */
	FUNCTION(0x53, 0x55, 0x31, 0xed, 0x48, 0x8b, 0x6c, 0x24, 8, 0x48, 0x83, 0xc4, 16, 0x90,
		 0xc3);
	CHECK_INT(fp_is_unknown(13), 1);
	/* mov %rbp,-8(%rsp); xor %ebp,%ebp; mov -8(%rsp),%rbp; ret */
	FUNCTION(0x48, 0x89, 0x6c, 0x24, 0xf8, 0x31, 0xed, 0x48, 0x8b, 0x6c, 0x24, 0xf8, 0xc3);
	RULES({7, SP(1, 1)}, {12, SP(1, 1)});
}

/* Where two paths meet, and rbp was saved on the first alone. */
TEST(frame_pointers_of_paths_that_meet)
{
	/* test; je 9; mov %rbp,-8(%rsp); 9: nop; nop; nop; ud2 */
	uint8_t code[] = {0x85, 0xff, 0x74, 5,    0x48, 0x89, 0x6c,
			  0x24, 0xf8, 0x90, 0x90, 0x90, 0x0f, 0x0b};

	function(code, sizeof(code));
	CHECK_INT(rule(9), SP(1, 0));
	code[9] = 0x31; /* xor %ebp,%ebp */
	code[10] = 0xed;
	function(code, sizeof(code));
	CHECK_INT(fp_is_unknown(11), 1);
	/* test; je 11; mov %rbp,-8(%rsp); xor %ebp,%ebp; 11: nop; ud2 */
	FUNCTION(0x85, 0xff, 0x74, 7, 0x48, 0x89, 0x6c, 0x24, 0xf8, 0x31, 0xed, 0x90, 0x0f, 0x0b);
	CHECK_INT(fp_is_unknown(11), 1);
}

TEST(branches)
{
	/* test; je +2; push %rbx; pop %rbx; ret */
	FUNCTION(0x85, 0xff, 0x74, 2, 0x53, 0x5b, 0xc3);
	RULES({5, SP(2, 0)}, {6, SP(1, 0)});
	/* je +1 over a push to a ret: one place with two depths, nothing is certain */
	FUNCTION(0x85, 0xff, 0x74, 1, 0x53, 0xc3);
	for (uint32_t i = 0; i < 6; i++)
		CHECK_INT(rule(i), NONE);
	/* a return with something pushed */
	FUNCTION(0x53, 0xc3);
	RULES({0, NONE}, {1, NONE});
	/* into the middle of an instruction */
	FUNCTION(0x74, 1, 0xb8, 0xc3, 0, 0, 0, 0xc3);
	CHECK_INT(rule(0), NONE);
}

TEST(what_cannot_be_followed)
{
	/* push %rbx; mov (%rdi),%rsp; nop: up to there, not beyond */
	FUNCTION(0x53, 0x48, 0x8b, 0x27, 0x90, 0xc3);
	RULES({0, SP(1, 0)}, {1, SP(2, 0)}, {4, NONE});
	FUNCTION(0x5b, 0x90, 0xc3); /* pops its own return address */
	RULES({0, SP(1, 0)}, {1, NONE});
}

TEST(calls_that_do_not_return)
{
	/* 0: push %rbx; call 8; int3 int3; 8: hlt; padding; 16: push, call 8, then 22: another
	 * function: ret */
	static const uint8_t code[] = {0x53, 0xe8, 2,    0,    0,    0,    0xcc, 0xcc,
				       0xf4, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
				       0x53, 0xe8, 0xf2, 0xff, 0xff, 0xff, 0x90, 0xc3};

	FROM(code, 0, 16);
	RULES({1, SP(2, 0)}, {8, SP(1, 0)}, {17, SP(2, 0)}, {22, NONE});
	/* and when it is known that a function begins there, it has its own rows */
	FROM(code, 0, 16, 22);
	RULES({17, SP(2, 0)}, {22, SP(1, 0)});
}

/* A call of what its name says not to return: behind it another function's cold code begins. */
TEST(calls_that_do_not_return_by_name)
{
	/* 0: push %rbx; call 0x5000; 6: pop %rbx; ret; 8: jmp 0x5000; 13: push %rbx; call 8; pop;
	 * ret
	 */
	static const uint8_t code[] = {0x53, 0xe8, 0xfa, 0x3f, 0,    0,    0x5b,
				       0xc3, 0xe9, 0xf3, 0x3f, 0,    0,    0x53,
				       0xe8, 0xf5, 0xff, 0xff, 0xff, 0x5b, 0xc3};

	for (int named = 0; named < 2; named++) {
		begins(0);
		begins(8);
		begins(13);
		if (named)
			CHECK_INT(code_entries_add(&noreturn, TEXT + 0x4000), 0);
		CHECK_INT(code_entries_add(&noreturn, TEXT + 0x5000), 0);
		follow(code, sizeof(code));
		RULES({1, SP(2, 0)}, {6, named ? NONE : SP(2, 0)}, {8, SP(1, 0)}, {14, SP(2, 0)},
		      {19, named ? NONE : SP(2, 0)});
	}
}

/* F returns by code of another function, by what has other rows, or by what is not in the text: a
 * call of it returns. */
TEST(calls_that_return_by_other_code)
{
	/* 0: xor %esi,%esi; 2: ret; 4: F; 12: push %rbx; call F; pop %rbx; ret */
	uint8_t code[] = {0x31, 0xf6, 0xc3, 0xcc, 0xbe, 1,    0,    0,    0,    0xeb, 0xf7,
			  0xcc, 0x53, 0xe8, 0xf2, 0xff, 0xff, 0xff, 0x5b, 0xc3, 0x90, 0x90};

	for (int how = 0; how < 3; how++) {
		if (how == 1) {
			CHECK_INT(rows_add(&known, TEXT + 9, SP(9, 0)), 0);
			CHECK_INT(rows_add(&known, TEXT + 11, NONE), 0);
		}
		if (how == 2)
			code[14] = 2; /* F is at 20 */
		for (int i = 15; i < 18 && how == 2; i++)
			code[i] = 0;
		FROM(code, 0, how == 2 ? 20 : 4, 12);
		RULES({13, SP(2, 0)}, {18, SP(2, 0)}, {19, SP(1, 0)});
		rows_fini(&known);
	}
}

TEST(pointers_are_followed_with_care)
{
	/* 0: ret; 4: push %rbx; pop %rbx; ret; 8: jmp *%rax: a label of a switch, perhaps */
	static const uint8_t code[] = {0xc3, 0xcc, 0xcc, 0xcc, 0x53, 0x5b, 0xc3, 0xcc, 0xff, 0xe0};

	begins(0);
	perhaps(4);
	perhaps(8);
	perhaps(5000);
	follow(code, sizeof(code));
	RULES({5, SP(2, 0)}, {8, NONE});
}

/* Where ret $8, lret or iretq lead to is not known: no proof of a function, but no contradiction.
 */
TEST(returns_that_prove_nothing)
{
	/* push %rbx; pop %rbx; and then */
	static const uint8_t ends[][3] = {{0xc2, 8, 0}, {0xcb, 0x90, 0x90}, {0x48, 0xcf, 0x90}};
	uint8_t code[] = {0x53, 0x5b, 0xc3, 0x90, 0x90};

	for (size_t i = 0; i <= sizeof(ends) / sizeof(ends[0]); i++) {
		perhaps(0);
		follow(code, sizeof(code));
		CHECK_INT(rule(1), i ? NONE : SP(2, 0));
		function(code, sizeof(code));
		RULES({1, SP(2, 0)}, {2, SP(1, 0)});
		if (i < sizeof(ends) / sizeof(ends[0]))
			memcpy(code + 2, ends[i], sizeof(ends[i]));
	}
}

TEST(pointers_into_instructions)
{
	/* push %rbx; call *%rdx; mov %rax,%rbx, whose last byte is a ret; pop %rbx; ret */
	static const uint8_t code[] = {0x53, 0xff, 0xd2, 0x48, 0x89, 0xc3, 0x5b, 0xc3};

	perhaps(5);
	follow(code, sizeof(code));
	CHECK_INT(rule(5), NONE);
	perhaps(0);
	follow(code, sizeof(code));
	CHECK_INT(rule(5), SP(2, 0));
}

TEST(pointers_to_what_does_not_return)
{
	/* 0: ret; 4: call 12; int3: from the middle of a function, perhaps; 12: hlt */
	static const uint8_t code[] = {0xc3, 0xcc, 0xcc, 0xcc, 0xe8, 3,   0,
				       0,    0,    0xcc, 0xcc, 0xcc, 0xf4};

	begins(0);
	begins(12);
	perhaps(4);
	follow(code, sizeof(code));
	RULES({12, SP(1, 0)}, {4, NONE});
}

TEST(pointers_to_what_calls_with_an_aligned_stack)
{
	/* 0: ret; 4: sub $8,%rsp; call *%rbx; call 20; int3...; 20: hlt */
	uint8_t code[] = {0xc3, 0xcc, 0xcc, 0xcc, 0x48, 0x83, 0xec, 8,    0xff, 0xd3, 0xe8,
			  5,    0,    0,    0,    0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xf4};

	begins(0);
	begins(20);
	perhaps(4);
	follow(code, sizeof(code));
	RULES({8, SP(2, 0)}, {10, SP(2, 0)});
	/* with 16 bytes more than at the start of a function it is a part of one */
	code[7] = 16;
	begins(0);
	begins(20);
	perhaps(4);
	follow(code, sizeof(code));
	CHECK_INT(rule(8), NONE);
}

TEST(pointers_into_functions)
{
	/* push %rbx; test; je 7; jmp *%rax; 7: pop %rbx; ret: the return proves what is pushed */
	static const uint8_t code[] = {0x53, 0x85, 0xff, 0x74, 2, 0xff, 0xe0, 0x5b, 0xc3};

	/* from its pop on it would pop its own return address: that is no function, and spoils none
	 */
	perhaps(7);
	perhaps(0);
	follow(code, sizeof(code));
	RULES({0, SP(1, 0)}, {5, SP(2, 0)}, {7, SP(2, 0)}, {8, SP(1, 0)});
	perhaps(7);
	follow(code, sizeof(code));
	CHECK_INT(rule(7), NONE);
}

TEST(instructions_that_overlap)
{
	/* 0: je 4; 2: jmp 5; 4: mov $0xc3,%eax; ret: the ret at 5 is followed first */
	static const uint8_t jump[] = {0x74, 2, 0xeb, 1, 0xb8, 0xc3, 0, 0, 0, 0xc3};
	/* mov $0xc3909090,%eax; ret, and a function that begins at 2 */
	static const uint8_t symbol[] = {0xb8, 0x90, 0x90, 0x90, 0xc3, 0xc3};

	function(jump, sizeof(jump));
	RULES({0, NONE}, {5, NONE});
	for (uint32_t first = 0; first < 3; first += 2) {
		FROM(symbol, first, 2 - first);
		CHECK_INT(rule(0), NONE);
		/* that was followed already is in doubt, too */
		CHECK_INT(rule(2), first ? NONE : SP(1, 0));
	}
}

/* What a trial forgets stays inside of the instruction that is kept, with or without its prefix. */
TEST(lock_prefixes_and_trials)
{
	/* 0: lock, 1: cmpxchg %ecx,-112(%rbx), in which 4 is a nop; ret; 6: push %rbx; jmp 1;
	 * 10: test; je 4; ret; 16: test; je 1; ret; 21: jmp 0. No function begins at 0 or 1, so
	 * that a jump to it is no tail call. */
	uint8_t code[] = {0xf0, 0x0f, 0xb1, 0x4b, 0x90, 0xc3, 0x53, 0xeb, 0xf8, 0xcc, 0x85, 0xff,
			  0x74, 0xf6, 0xc3, 0xcc, 0x85, 0xff, 0x74, 0xed, 0xc3, 0xeb, 0xe9};

	for (uint32_t without = 0; without < 2; without++) {
		code[8] = without ? 0xf7 : 0xf8; /* the trial begins at the other */
		code[22] = without ? 0xea : 0xe9;
		begins(21);
		for (uint32_t i = 0; i < 3; i++)
			CHECK_INT(code_entries_add(&maybe, TEXT + (const uint8_t[]){6, 10, 16}[i]),
				  0);
		follow(code, sizeof(code));
		RULES({without, SP(1, 0)}, {6, NONE}, {10, NONE}, {16, SP(1, 0)});
	}
}

/* A trial that comes to a kept instruction with less known, and then fails, keeps its bytes. */
TEST(trials_that_meet_what_is_kept)
{
	/* push %rbp; mov %rsp,%rbp; 4: nop of 2 bytes; leave; ret; 8: push %rbp; mov %rsp,%rbp;
	 * push %rbx; test; je 19; jmp 4; 19: push %rbx; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x66, 0x90, 0xc9,
				       0xc3, 0x55, 0x48, 0x89, 0xe5, 0x53, 0x85,
				       0xff, 0x74, 2,    0xeb, 0xf1, 0x53, 0xc3};

	begins(0);
	perhaps(8);
	follow(code, sizeof(code));
	RULES({4, FP(2, 1)}, {5, FP(2, 1)}, {8, NONE});
}

TEST(lock_prefixes_that_are_jumped_over)
{
	/* test; je 5; 4: lock, 5: cmpxchg %ecx,(%rbx); ret */
	FUNCTION(0x85, 0xff, 0x74, 1, 0xf0, 0x0f, 0xb1, 0x0b, 0xc3);
	RULES({4, SP(1, 0)}, {8, SP(1, 0)});
	/* with another depth */
	FUNCTION(0x85, 0xff, 0x74, 2, 0x53, 0xf0, 0x0f, 0xb1, 0x0b, 0xc3);
	CHECK_INT(rule(6), NONE);
}

TEST(paths_that_meet)
{
	/* push %rbp; mov %rsp,%rbp; test; je 11; sub %rax,%rsp; 11: nop; leave; ret */
	FUNCTION(0x55, 0x48, 0x89, 0xe5, 0x85, 0xff, 0x74, 3, 0x48, 0x29, 0xc4, 0x90, 0xc9, 0xc3);
	RULES({8, FP(2, 1)}, {11, FP(2, 1)}, {13, SP(1, 0)});
	/* push %rbp; test; je 8; mov %rsp,%rbp; 8: nop; pop %rbp; ret: sp still says it */
	FUNCTION(0x55, 0x85, 0xff, 0x74, 3, 0x48, 0x89, 0xe5, 0x90, 0x5d, 0xc3);
	RULES({8, SP(2, 1)}, {10, SP(1, 0)});
	/* the same, and sub %rax,%rsp on the other path: neither says it */
	FUNCTION(0x55, 0x85, 0xff, 0x74, 6, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4, 0x90, 0x5d, 0xc3);
	CHECK_INT(rule(11), NONE);
}

TEST(padding_behind_calls)
{
	/* 0: push %rbx; call 0x20; padding; 16: dec %edi; jne 16; pop %rbx; ret */
	uint8_t code[0x21] = {0x53, 0xe8, 0x1a, 0, 0, 0,    0x66, 0x2e, 0x0f, 0x1f, 0x84,
			      0,    0,    0,    0, 0, 0xff, 0xcf, 0x75, 0xfc, 0x5b, 0xc3};

	code[0x20] = 0xc3;
	function(code, sizeof(code)); /* the head of a loop */
	RULES({1, SP(2, 0)}, {16, SP(2, 0)}, {21, SP(1, 0)});
	code[20] = 0x90; /* no pop: what this function has pushed is no more there */
	function(code, sizeof(code));
	RULES({1, SP(2, 0)}, {16, NONE});
	code[18] = 0xeb; /* an endless loop proves nothing */
	function(code, sizeof(code));
	RULES({1, SP(2, 0)}, {16, NONE});
}

TEST(what_proves_padding)
{
	/* 0: push %rbx; call 0x20; padding; 16: jmp 0x31; 0x20: ret; 0x30: push; 0x31: nop, pop,
	 * ret */
	uint8_t other[0x34] = {0x53, 0xe8, 0x1a, 0, 0, 0, 0x66, 0x2e, 0x0f,
			       0x1f, 0x84, 0,    0, 0, 0, 0,    0xeb, 0x1f};
	/* push %rbp; test; je 18; mov %rsp,%rbp; call 20; padding; 16: jmp 18; 18: pop %rbp; ret;
	 * 20: ret */
	static const uint8_t state[] = {0x55, 0x85, 0xff, 0x74, 0x0d, 0x48, 0x89,
					0xe5, 0xe8, 7,    0,    0,    0,    0x0f,
					0x1f, 0,    0xeb, 0,    0x5d, 0xc3, 0xc3};

	/* push %rbp; test; je 18; mov $1,%ebp; call 20; 15: padding; 16: dec %edi; 18: pop %rbp;
	 * ret; 20: ret. Whether rbp still has the caller's value makes no difference. */
	static const uint8_t written[] = {0x55, 0x85, 0xff, 0x74, 0x0d, 0xbd, 1,
					  0,    0,    0,    0xe8, 5,    0,    0,
					  0,    0x90, 0xff, 0xcf, 0x5d, 0xc3, 0xc3};

	begins(0);
	begins(20);
	follow(written, sizeof(written));
	RULES({10, SP(2, 1)}, {15, SP(2, 1)}, {16, SP(2, 1)}, {19, SP(1, 0)});
	other[0x20] = 0xc3;
	memcpy(other + 0x30, (const uint8_t[]){0x53, 0x90, 0x5b, 0xc3}, 4);
	begins(0x30);
	begins(0x20);
	function(other, sizeof(other)); /* code of another function proves nothing */
	RULES({1, SP(2, 0)}, {0x31, SP(2, 0)}, {16, NONE});
	begins(0);
	begins(20);
	follow(state, sizeof(state)); /* nor does another state, though both agree on sp */
	RULES({8, FP(2, 1)}, {18, SP(2, 1)}, {16, NONE});
}

TEST(switches)
{
	/* push %rbx; cmp $1,%edi; ja 0x17; lea table(%rip),%rdx; mov %edi,%eax;
	 * movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax; 0x17: pop %rbx; ret; 0x19: nop; pop;
	 * ret; 0x1c: push; pop; pop; ret */
	uint8_t code[] = {0x53, 0x83, 0xff, 1,    0x77, 0x11, 0x48, 0x8d, 0x15, 0xf3, 0x0f,
			  0,    0,    0x89, 0xf8, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0,
			  0xff, 0xe0, 0x5b, 0xc3, 0x90, 0x5b, 0xc3, 0x53, 0x5b, 0x5b, 0xc3};
	int32_t entries[] = {0x1a - 0x1000, 0x1d - 0x1000, 0x18 - 0x1000};

	code[5] = 0x18 - 6;
	table = (struct code_bytes){(const uint8_t *)entries, sizeof(entries), TEXT + 0x1000};
	function(code, sizeof(code));
	RULES({0x16, SP(2, 0)}, {0x1a, SP(2, 0)}, {0x1c, SP(1, 0)}, {0x1e, SP(3, 0)});
	/* another register is compared: nobody knows how many entries there are */
	code[2] = 0xfe;
	function(code, sizeof(code));
	RULES({0x16, SP(2, 0)}, {0x1a, NONE});
	/* the table is not in what can be read */
	code[2] = 0xff;
	table.len = 4;
	function(code, sizeof(code));
	CHECK_INT(rule(0x1a), NONE);
	table = (struct code_bytes){0};
}

/* Each of 65,536 jumps has a table of 4,096 entries that lead to all of them. */
TEST(switches_without_end)
{
	/* cmp $0xfff,%edi; ja 8; 8: jmp *table(,%rdi,8); nop */
	static const uint8_t block[16] = {0x81, 0xff, 0xff, 0x0f, 0, 0,    0x77, 0,
					  0xff, 0x24, 0xfd, 0,    0, 0x40, 0,    0x90};
	static uint8_t code[1 << 20];
	static uint64_t entries[4096];

	for (size_t i = 0; i < sizeof(code); i += sizeof(block))
		memcpy(code + i, block, sizeof(block));
	for (size_t i = 0; i < 4096; i++)
		entries[i] = TEXT + 16 * (i * 16 + 1);
	table = (struct code_bytes){(const uint8_t *)entries, sizeof(entries), 0x400000};
	for (size_t i = 0; i < 4096; i++)
		begins((uint32_t)(16 * i));
	follow(code, sizeof(code));
	for (uint32_t i = 0; i < 4096; i++) {
		RULES({16 * i + 8, SP(1, 0)}, {16 * (16 * i + 1) + 8, SP(1, 0)});
		/* no jump leads to this */
		CHECK_INT(rule(16 * (4096 + 8 * i + 2 * (i % 2 ? 1 : 4))), NONE);
	}
	table = (struct code_bytes){0};
}

/* Each of 300 functions has a table of 4,096 entries, the last of which no earlier table has: 256
 * tables are followed. */
TEST(switches_beyond_the_budget)
{
	/* cmp $0xfff,%edi; ja 8; 8: jmp *table(,%rdi,8); nop */
	static const uint8_t block[16] = {0x81, 0xff, 0xff, 0x0f, 0, 0,    0x77, 0,
					  0xff, 0x24, 0xfd, 0,    0, 0x40, 0,    0x90};
	static uint8_t code[16 * 300 + 4096 + 300];
	static uint64_t entries[4096 + 300];

	memset(code, 0xc3, sizeof(code));
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t at = 0x400000 + 8 * i;

		memcpy(code + (size_t)16 * i, block, sizeof(block));
		memcpy(code + (size_t)16 * i + 11, &at, sizeof(at));
		begins(16 * i);
	}
	for (size_t i = 0; i < 4096 + 300; i++)
		entries[i] = TEXT + 16 * 300 + i;
	table = (struct code_bytes){(const uint8_t *)entries, sizeof(entries), 0x400000};
	follow(code, sizeof(code));
	for (uint32_t i = 0; i < 300; i++) {
		RULES({16 * i + 8, SP(1, 0)}, {16 * 300 + 4095 + i, i < 256 ? SP(1, 0) : NONE});
	}
	table = (struct code_bytes){0};
}

/* The path from each of 65,536 pointers comes to a contradiction, where the text ends. */
TEST(pointers_without_end)
{
	static uint8_t code[(1 << 16) + 8];
	static const uint8_t end[] = {0x58, 0xc3, 0x53, 0x5b, 0xc3}; /* pop, ret; push, pop, ret */
	uint32_t function = (1 << 16) + 2;

	memset(code, 0x90, sizeof(code));
	memcpy(code + (1 << 16), end, sizeof(end));
	for (uint32_t n = 8; n <= 1 << 16; n <<= 13) {
		for (uint32_t i = 0; i < n; i++)
			perhaps(i);
		perhaps(function);
		follow(code, sizeof(code));
		CHECK_INT(rule(0), NONE);
		/* so many were in vain that the last function is not tried */
		CHECK_INT(rule(function + 1), n == 8 ? SP(2, 0) : NONE);
	}
}

/* 0: push %rbx; call f; 10 bytes of nop; 16: what stands behind the call */
static void call_site(uint8_t *code, uint32_t at, uint32_t f)
{
	static const uint8_t nop[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
	int32_t to = (int32_t)f - (int32_t)at - 6;

	code[at] = 0x53;
	code[at + 1] = 0xe8;
	memcpy(code + at + 2, &to, sizeof(to));
	memcpy(code + at + 6, nop, sizeof(nop));
	begins(at);
}

/* Behind each call the path leads through 4,000 nops to a return with a word pushed. */
TEST(calls_without_end)
{
	static uint8_t code[32 * 1000 + 4096];
	static const uint8_t returns[] = {0x5b, 0xc3};
	uint32_t chain = sizeof(code) - 4096, f = sizeof(code) - 2, last = chain - 32;

	for (uint32_t sites = 8; sites <= 800; sites += 792) {
		memset(code, 0xcc, sizeof(code));
		memset(code + chain, 0x90, 4000);
		code[chain + 4000] = code[f] = 0xc3;
		begins(f);
		for (uint32_t i = 0; i < sites; i++) {
			int32_t to = (int32_t)chain - (int32_t)(32 * i + 21);

			call_site(code, 32 * i, f);
			code[32 * i + 16] = 0xe9;
			memcpy(code + 32 * i + 17, &to, sizeof(to));
		}
		call_site(code, last, f);
		memcpy(code + last + 16, returns, sizeof(returns));
		follow(code, sizeof(code));
		RULES({1, SP(2, 0)}, {16, NONE}, {last + 1, SP(2, 0)},
		      {last + 16, sites == 8 ? SP(2, 0) : NONE});
	}
}

TEST(nops_behind_calls)
{
	/* push %rbx; call 0x31; nops none of which ends at a multiple of 16; an endless loop, which
	 * proves nothing; 0x31: ret */
	uint8_t code[] = {
		0x53, 0xe8, 0x2b, 0, 0, 0, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0,    0,    0x66, 0x90,
		0x0f, 0x1f, 0x80, 0, 0, 0, 0,    0x0f, 0x1f, 0x80, 0, 0, 0, 0,    0x66, 0x90, 0x0f,
		0x1f, 0x80, 0,    0, 0, 0, 0x0f, 0x1f, 0x80, 0,    0, 0, 0, 0xeb, 0xfe, 0xc3};

	FROM(code, 0, 0x31);
	RULES({1, SP(2, 0)}, {6, NONE}, {0x2f, NONE});
	code[0x2f] = 0x5b; /* pop, ret: this proves it */
	code[0x30] = 0xc3;
	FROM(code, 0, 0x31);
	CHECK_INT(rule(0x2f), SP(2, 0));
}

TEST(what_is_known_is_kept)
{
	CHECK_INT(rows_add(&known, TEXT, SP(9, 0)), 0);
	CHECK_INT(rows_add(&known, TEXT + 2, NONE), 0);
	begins(0);
	begins(2);
	FOLLOW(0x53, 0xc3, 0x90, 0xc3);
	RULES({0, NONE}, {2, SP(1, 0)});
}

/* ---- by the ways out ---- */

#define READ(...) \
	read_code((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), 0)

TEST(ways_out)
{
	begins(0);
	/* push %rbx; jmp *%rax; 3: xor %eax,%eax; pop %rbx; ret: nothing leads to 3 */
	READ(0x53, 0xff, 0xe0, 0x31, 0xc0, 0x5b, 0xc3);
	RULES({3, SP(2, 0)}, {5, SP(2, 0)}, {6, SP(1, 0)});
	/* push %rbp; push %rbx; jmp *%rax; 4: nopw; nop; add $8,%rsp; pop %rbp; ret */
	READ(0x55, 0x53, 0xff, 0xe0, 0x31, 0xc0, 0x48, 0x83, 0xc4, 8, 0x5d, 0xc3);
	RULES({4, SP(3, 1)}, {10, SP(2, 1)}, {11, SP(1, 0)});
	/* jmp *%rax; 2: xor; leave; ret: by rbp, whose place leave says */
	READ(0xff, 0xe0, 0x31, 0xc0, 0xc9, 0xc3);
	RULES({2, FP(2, 1)}, {5, SP(1, 0)});
	/* jmp *%rax; 2: lea -8(%rbp),%rsp; pop %rbx; pop %rbp; ret */
	READ(0xff, 0xe0, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3);
	CHECK_INT(rule(2), FP(2, 1));
	CHECK_INT(rule(6), FP(2, 1)); /* sp says the same */
	CHECK_INT(rule(8), SP(1, 0));
	/* a function: push %rbp; mov %rsp,%rbp; sub $16,%rsp; call *%rax; leave; ret */
	READ(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 16, 0xff, 0xd0, 0xc9, 0xc3);
	RULES({0, SP(1, 0)}, {1, SP(2, 1)}, {8, FP(2, 1)});
}

TEST(ways_out_that_contradict)
{
	/* jmp *%rax; 2: test; je 8; pop %rbx; ret; 8: pop; ret */
	uint8_t code[] = {0xff, 0xe0, 0x85, 0xff, 0x74, 2, 0x5b, 0xc3, 0x5b, 0xc3};

	read_code(code, sizeof(code), 0);
	CHECK_INT(rule(2), SP(2, 0));
	code[8] = 0x90; /* one way pops, the other does not */
	read_code(code, sizeof(code), 0);
	RULES({2, NONE}, {4, NONE}, {6, NONE});
	/* push; ret: it would return to what it has pushed */
	READ(0xff, 0xe0, 0x31, 0xc0, 0x53, 0xc3);
	RULES({2, NONE}, {4, NONE});
	/* mov %rax,%rsp; ret, and ret $8: from where, is not known */
	READ(0xff, 0xe0, 0x31, 0xc0, 0x48, 0x89, 0xc4, 0xc3);
	CHECK_INT(rule(2), NONE);
	READ(0xff, 0xe0, 0x31, 0xc0, 0xc2, 8, 0);
	CHECK_INT(rule(2), NONE);
	/* jmp *%rax; 2: xor; jmp 2: no way out */
	READ(0xff, 0xe0, 0x31, 0xc0, 0xeb, 0xfc);
	CHECK_INT(rule(2), NONE);
}

/* Behind a call that does not return stands another function. */
TEST(ways_out_behind_calls)
{
	/* jmp *%rax; 2: sub $8,%rsp; call 0x3000; 11: push %rbx; pop %rbx; ret */
	READ(0xff, 0xe0, 0x48, 0x83, 0xec, 8, 0xe8, 0xf5, 0x1f, 0, 0, 0x53, 0x5b, 0xc3);
	CHECK_INT(rule(6), NONE); /* sp would be no multiple of 16 */
	CHECK_INT(rule(11), SP(1, 0));
	/* 2: call 0x3000; 7: pop %rbx; ret; 9: call 0x3000; 14: ret, where a function begins: it
	 * does not return there, so not at 2, either */
	for (int end = 0; end < 2; end++) {
		if (end)
			begins(14);
		READ(0xff, 0xe0, 0xe8, 0xf9, 0x1f, 0, 0, 0x5b, 0xc3, 0xe8, 0xf2, 0x1f, 0, 0, 0xc3);
		RULES({2, end ? NONE : SP(2, 0)}, {7, SP(2, 0)});
	}
}

/* What is known on a way out leads on to what has none. */
TEST(ways_on_from_ways_out)
{
	/* jmp *%rax; 2: test; je 8; pop %rbx; ret; 8: xor; jmp 8 */
	READ(0xff, 0xe0, 0x85, 0xff, 0x74, 2, 0x5b, 0xc3, 0x31, 0xc0, 0xeb, 0xfc);
	RULES({8, SP(2, 0)}, {10, SP(2, 0)});
	/* 2: push %rbx; call 11; pop %rbx; ret; 11: pop; ret: what is called has pushed nothing */
	READ(0xff, 0xe0, 0x53, 0xe8, 3, 0, 0, 0, 0x5b, 0xc3, 0xcc, 0x90, 0x5b, 0xc3);
	RULES({3, SP(2, 0)}, {12, SP(1, 0)});
}

TEST(bytes_that_are_no_code)
{
	/* mov %rax,%rbx; ret, where a pointer leads to the last byte of the mov */
	perhaps(4);
	READ(0xff, 0xe0, 0x48, 0x89, 0xc3, 0x5b, 0xc3);
	RULES({2, SP(2, 0)}, {4, SP(2, 0)});
	/* padding behind a return has no rows: ret; nop; nop; pop; ret */
	READ(0xc3, 0x90, 0x66, 0x90, 0x5b, 0xc3);
	RULES({1, NONE}, {4, SP(2, 0)});
	/* zeros are data; decoding goes on at a multiple of 16 */
	{
		uint8_t code[20] = {0xff, 0xe0, 0, 0, 0x48};

		code[16] = 0x90;
		code[17] = 0x5b;
		code[18] = 0xc3;
		read_code(code, sizeof(code), 0);
		RULES({4, NONE}, {17, SP(2, 0)});
	}
}

/* ---- copies of sp ---- */

/* The row is a special of this kind: of *(reg + cfa) + add, or of reg + cfa. */
static int is_special(uint32_t at, uint32_t kind, uint32_t reg, uint32_t cfa, uint32_t add)
{
	const uint32_t *w = NULL;

	return words && (table_lookup(words, n_words, TEXT + at, &w) & 0xc000) == 0xc000 && w &&
	       (w[0] & 0xffff) == (kind | reg << 8) && w[1] == cfa && w[3] == add;
}

/* 0: mov %rsp,%rax; 3: and $-64,%rsp; 7: mov %rax,16(%rsp); 12: xor %eax,%eax; 14: push %rbx; pop
 * %rbx; 16: mov 16(%rsp),%rsp; 21: ret */
static const uint8_t aligned_frame[] = {0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xc0, 0x48,
					0x89, 0x44, 0x24, 16,   0x31, 0xc0, 0x53, 0x5b,
					0x48, 0x8b, 0x64, 0x24, 16,   0xc3};

TEST(frames_by_copies)
{
	uint8_t code[sizeof(aligned_frame)];

	function(aligned_frame, sizeof(aligned_frame));
	CHECK_INT(rule(3), SP(1, 0));
	CHECK_INT(is_special(7, DWARF_REG, 0, 8, 0), 1);
	CHECK_INT(is_special(12, DWARF_DEREF, 7, 16, 8), 1);
	CHECK_INT(is_special(15, DWARF_DEREF, 7, 24, 8), 1); /* a word is pushed */
	CHECK_INT(is_special(16, DWARF_DEREF, 7, 16, 8), 1);
	CHECK_INT(rule(21), SP(1, 0));
	memcpy(code, aligned_frame, sizeof(code));
	code[20] = 24; /* another word is loaded into rsp: who knows what it is */
	function(code, sizeof(code));
	CHECK_INT(is_special(16, DWARF_DEREF, 7, 16, 8), 1);
	CHECK_INT(rule(21), NONE);
	memcpy(code, aligned_frame, sizeof(code));
	code[8] = 0x90; /* the word is not stored, and rax is cleared */
	memset(code + 7, 0x90, 5);
	function(code, sizeof(code));
	CHECK_INT(is_special(12, DWARF_REG, 0, 8, 0), 1);
	CHECK_INT(rule(14), NONE);
}

/* 0: mov %rsp,%rax; push %rbp; 4: and $-64,%rsp; mov %rax,%rbp; 11: call *%rdx; 13: lea
 * -8(%rbp),%rsp; pop %rbp; 18: ret */
TEST(copies_in_rbp)
{
	FUNCTION(0x48, 0x89, 0xe0, 0x55, 0x48, 0x83, 0xe4, 0xc0, 0x48, 0x89, 0xc5, 0xff, 0xd2, 0x48,
		 0x8d, 0x65, 0xf8, 0x5d, 0xc3);
	RULES({11, FP(1, 1)}, {13, FP(1, 1)}, {18, SP(1, 0)});
}

TEST(copies_across_calls)
{
	/* 0: lea 8(%rsp),%r11; 5: and $-16,%rsp; 9: call 0x12; 14: lea -8(%r11),%rsp; 18: ret; 19:
	 * what is called: xor %eax,%eax, or of r11; ret */
	uint8_t code[] = {0x4c, 0x8d, 0x5c, 0x24, 8,    0x48, 0x83, 0xe4, 0xf0, 0xe8, 5,   0,
			  0,    0,    0x49, 0x8d, 0x63, 0xf8, 0xc3, 0x31, 0xc0, 0x90, 0xc3};

	function(code, sizeof(code));
	CHECK_INT(is_special(9, DWARF_REG, 11, 0, 0), 1);
	CHECK_INT(is_special(14, DWARF_REG, 11, 0, 0), 1);
	CHECK_INT(rule(18), SP(1, 0));
	memcpy(code + 19, (const uint8_t[]){0x45, 0x31, 0xdb}, 3); /* xor %r11d,%r11d */
	function(code, sizeof(code));
	CHECK_INT(is_special(9, DWARF_REG, 11, 0, 0), 1);
	CHECK_INT(rule(14), NONE);
	/* of what is not in this text nothing is known: call *%rax; nop */
	memcpy(code + 9, (const uint8_t[]){0xff, 0xd0, 0x90, 0x90, 0x90}, 5);
	function(code, sizeof(code));
	CHECK_INT(rule(14), NONE);
}

/* The copy wanders down the stack: mov %rsp,%rax; and $-64,%rsp; 7: mov %rax,-8(%rsp); 12: lea
 * -128(%rsp),%rsp; 17: push 0x78(%rsp); 21: lea 8(%rsp),%rsp; 26: nop; mov -8(%rsp),%rsi; 32: mov
 * -16(%rsi),%rbp; 36: lea (%rsi),%rsp; 39: ret */
TEST(copies_that_wander)
{
	FUNCTION(0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xc0, 0x48, 0x89, 0x44, 0x24, 0xf8, 0x48, 0x8d,
		 0x64, 0x24, 0x80, 0xff, 0x74, 0x24, 0x78, 0x48, 0x8d, 0x64, 0x24, 8, 0x90, 0x48,
		 0x8b, 0x74, 0x24, 0xf8, 0x48, 0x8b, 0x6e, 0xf0, 0x48, 0x8d, 0x26, 0xc3);
	CHECK_INT(is_special(12, DWARF_DEREF, 7, (uint32_t)-8, 8), 1);
	CHECK_INT(is_special(17, DWARF_DEREF, 7, 0x78, 8), 1);
	CHECK_INT(is_special(21, DWARF_DEREF, 7, 0, 8), 1);
	CHECK_INT(is_special(26, DWARF_DEREF, 7, (uint32_t)-8, 8), 1);
	CHECK_INT(fp_is_unknown(39), 1); /* it was not saved there */
	/* where paths with and without a copy meet nothing is known, which is no contradiction: mov
	 * %rsp,%rax; test; je 10; xor %eax,%eax; nop; 10: and $-16,%rsp; ud2 */
	FUNCTION(0x48, 0x89, 0xe0, 0x85, 0xff, 0x74, 3, 0x31, 0xc0, 0x90, 0x48, 0x83, 0xe4, 0xf0,
		 0x0f, 0x0b);
	RULES({10, SP(1, 0)}, {14, NONE});
}

/* The row is a special that has the caller's rbp so: by these flags, at this distance. */
static int has_fp(uint32_t at, uint32_t flags, uint32_t fp)
{
	const uint32_t *w = NULL;

	return words && (table_lookup(words, n_words, TEXT + at, &w) & 0xc000) == 0xc000 && w &&
	       w[0] >> 16 == flags && w[2] == fp;
}

/* What gcc makes where an aligned function has arguments on the stack: 0: lea 8(%rsp),%r10; and
 * $-64,%rsp; 9: push -8(%r10); push %rbp; 14: mov %rsp,%rbp; 17: push %r10; 19: sub $0x68,%rsp; sub
 * %rdi,%rsp; 26: call *%rdx; 28: mov -8(%rbp),%r10; 32: leave; 33: lea -8(%r10),%rsp; 37: ret */
static const uint8_t frame_by_r10[] = {0x4c, 0x8d, 0x54, 0x24, 8,    0x48, 0x83, 0xe4, 0xc0, 0x41,
				       0xff, 0x72, 0xf8, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x52, 0x48,
				       0x83, 0xec, 0x68, 0x48, 0x29, 0xfc, 0xff, 0xd2, 0x4c, 0x8b,
				       0x55, 0xf8, 0xc9, 0x49, 0x8d, 0x62, 0xf8, 0xc3};

TEST(aligned_frames_by_r10)
{
	static const uint32_t by_word[] = {19, 23, 26, 28, 32};
	uint8_t code[sizeof(frame_by_r10)];

	function(frame_by_r10, sizeof(frame_by_r10));
	CHECK_INT(rule(5), SP(1, 0));
	CHECK_INT(is_special(9, DWARF_REG, 10, 0, 0) && has_fp(9, 0, 0), 1);
	CHECK_INT(is_special(14, DWARF_REG, 10, 0, 0) && has_fp(14, 0, 0), 1);
	CHECK_INT(is_special(17, DWARF_REG, 10, 0, 0) && has_fp(17, DWARF_FP_AT_FP, 0), 1);
	for (size_t i = 0; i < sizeof(by_word) / sizeof(by_word[0]); i++)
		CHECK_INT(is_special(by_word[i], DWARF_DEREF, 6, (uint32_t)-8, 0) &&
				  has_fp(by_word[i], DWARF_FP_AT_FP, 0),
			  1);
	CHECK_INT(is_special(33, DWARF_DEREF, 7, (uint32_t)-16, 0) && has_fp(33, 0, 0), 1);
	CHECK_INT(rule(37), SP(1, 0));
	memcpy(code, frame_by_r10, sizeof(code));
	code[31] = 0xf0; /* another word is loaded */
	function(code, sizeof(code));
	CHECK_INT(is_special(32, DWARF_DEREF, 6, (uint32_t)-8, 0), 1);
	CHECK_INT(rule(37), NONE);
	memcpy(code, frame_by_r10, sizeof(code));
	code[17] = 0x41; /* push %r11, which is no copy: behind the call nothing is known */
	code[18] = 0x53;
	function(code, sizeof(code));
	CHECK_INT(rule(28), NONE);
}

/* The same with other registers saved: 0: lea 8(%rsp),%r10; and $-32,%rsp; push -8(%r10); push
 * %rbp; mov %rsp,%rbp; push %r12; push %r10; push %rbx; 22: call *%rdx; 24: lea -24(%rbp),%rsp; 28:
 * pop %rbx; 29: pop %r10; 31: pop %r12; 33: pop %rbp; 34: lea -8(%r10),%rsp; 38: ret */
TEST(aligned_frames_that_pop)
{
	FUNCTION(0x4c, 0x8d, 0x54, 0x24, 8, 0x48, 0x83, 0xe4, 0xe0, 0x41, 0xff, 0x72, 0xf8, 0x55,
		 0x48, 0x89, 0xe5, 0x41, 0x54, 0x41, 0x52, 0x53, 0xff, 0xd2, 0x48, 0x8d, 0x65, 0xe8,
		 0x5b, 0x41, 0x5a, 0x41, 0x5c, 0x5d, 0x49, 0x8d, 0x62, 0xf8, 0xc3);
	CHECK_INT(is_special(21, DWARF_DEREF, 6, (uint32_t)-16, 0), 1);
	CHECK_INT(is_special(24, DWARF_DEREF, 6, (uint32_t)-16, 0), 1);
	CHECK_INT(is_special(29, DWARF_DEREF, 6, (uint32_t)-16, 0), 1);
	CHECK_INT(is_special(33, DWARF_DEREF, 6, (uint32_t)-16, 0), 1);
	CHECK_INT(is_special(34, DWARF_DEREF, 7, (uint32_t)-24, 0) && has_fp(34, 0, 0), 1);
	CHECK_INT(rule(38), SP(1, 0));
}

/* Intel's: 0: push %rbx; mov %rsp,%rbx; 4: and $-64,%rsp; 8: push %rbp; push %rbp; 10: mov
 * 8(%rbx),%rbp; 14: mov %rbp,8(%rsp); mov %rsp,%rbp; 22: sub $0x70,%rsp; 26: call *%rdi; 28: mov
 * %rbp,%rsp; 31: pop %rbp; 32: mov %rbx,%rsp; 35: pop %rbx; 36: ret */
static const uint8_t frame_by_rbx[] = {0x53, 0x48, 0x89, 0xe3, 0x48, 0x83, 0xe4, 0xc0, 0x55, 0x55,
				       0x48, 0x8b, 0x6b, 8,    0x48, 0x89, 0x6c, 0x24, 8,    0x48,
				       0x89, 0xe5, 0x48, 0x83, 0xec, 0x70, 0xff, 0xd7, 0x48, 0x89,
				       0xec, 0x5d, 0x48, 0x89, 0xdc, 0x5b, 0xc3};

TEST(aligned_frames_by_rbx)
{
	uint8_t code[sizeof(frame_by_rbx)];

	function(frame_by_rbx, sizeof(frame_by_rbx));
	RULES({1, SP(2, 0)}, {4, SP(2, 0)}, {35, SP(2, 0)}, {36, SP(1, 0)});
	for (uint32_t at = 8; at < 35; at++)
		if (rule(at) != NONE)
			CHECK_INT(is_special(at, DWARF_REG, 3, 16, 0), 1);
	CHECK_INT(has_fp(10, 0, 0), 1);
	CHECK_INT(has_fp(14, DWARF_FP_UNKNOWN, 0), 1);
	CHECK_INT(has_fp(22, DWARF_FP_AT_FP, 0), 1);
	CHECK_INT(has_fp(28, DWARF_FP_AT_FP, 0), 1);
	CHECK_INT(has_fp(32, 0, 0), 1);
	memcpy(code, frame_by_rbx, sizeof(code));
	code[18] = 0; /* the word in which the caller's rbp was saved is overwritten */
	function(code, sizeof(code));
	CHECK_INT(has_fp(28, DWARF_FP_UNKNOWN, 0), 1);
}

/* ---- adjustments of sp that are no multiple of 8 ---- */

/* 0: sub $12,%rsp; nop; 5: sub $12,%rsp; 9: call *%rdi; 11: add $20,%rsp; nop; 16: add $4,%rsp; 20:
 * ret */
TEST(odd_adjustments)
{
	uint8_t code[] = {0x48, 0x83, 0xec, 12, 0x90, 0x48, 0x83, 0xec, 12, 0xff, 0xd7,
			  0x48, 0x83, 0xc4, 20, 0x90, 0x48, 0x83, 0xc4, 4,  0xc3};

	for (int backwards = 0; backwards < 2; backwards++) {
		if (backwards)
			read_code(code, sizeof(code), 0);
		else
			function(code, sizeof(code));
		CHECK_INT(is_special(4, DWARF_REG, 7, 20, 0), 1);
		RULES({9, SP(4, 0)}, {11, SP(4, 0)}, {20, SP(1, 0)});
		CHECK_INT(is_special(15, DWARF_REG, 7, 12, 0), 1);
	}
	code[19] = 3; /* a byte too few */
	function(code, sizeof(code));
	RULES({4, NONE}, {9, NONE}, {20, NONE});
	/* 0: sub $4,%rsp; push %rbp; 5: mov %rax,%rbp; pop %rbp; add $4,%rsp; 13: ret: rbp lies
	 * where no slot is */
	FUNCTION(0x48, 0x83, 0xec, 4, 0x55, 0x48, 0x89, 0xc5, 0x5d, 0x48, 0x83, 0xc4, 4, 0xc3);
	CHECK_INT(has_fp(5, 0, 0), 1);
	CHECK_INT(has_fp(8, DWARF_FP_UNKNOWN, 0), 1);
	/* 0: mov %rbp,-8(%rsp); 5: sub $12,%rsp; xor %ebp,%ebp; 11: mov 4(%rsp),%rbp; add $12,%rsp;
	 * 20: ret: it lies in one */
	FUNCTION(0x48, 0x89, 0x6c, 0x24, 0xf8, 0x48, 0x83, 0xec, 12, 0x31, 0xed, 0x48, 0x8b, 0x6c,
		 0x24, 4, 0x48, 0x83, 0xc4, 12, 0xc3);
	CHECK_INT(has_fp(11, DWARF_FP_SAVED, (uint32_t)-16), 1);
	RULES({20, SP(1, 0)});
}

/* ---- tables without a bound ---- */

/* 0: push %rbx; 1: lea 0x3000,%rsi; tzcnt %ecx,%ecx; 12: movslq (%rsi,%rcx,4),%rcx; 16: mov
 * %r8d,%eax; 19: add %rsi,%rcx; 22: mov $63,%esi; 27: jmp *%rcx; 29: xor %eax,%eax; pop %rbx; ret;
 * 33: xor %edx,%edx; 35: pop %rbx; ret */
static const uint8_t unbounded[] = {0x53, 0x48, 0x8d, 0x35, 0xf8, 0x1f, 0,    0,    0xf3, 0x0f,
				    0xbc, 0xc9, 0x48, 0x63, 0x0c, 0x8e, 0x44, 0x89, 0xc0, 0x48,
				    0x01, 0xf1, 0xbe, 0x3f, 0,    0,    0,    0xff, 0xe1, 0x31,
				    0xc0, 0x5b, 0xc3, 0x31, 0xd2, 0x5b, 0xc3};

/* With this byte in place of that at `at`, and a table of these entries; no path leads here. */
static uint32_t rule_before_jump(uint32_t at, uint8_t byte, uint32_t a, uint32_t b)
{
	const int32_t entries[] = {0x12345678, (int32_t)(TEXT + a) - 0x3000,
				   (int32_t)(TEXT + b) - 0x3000, -0x2000};
	uint8_t code[sizeof(unbounded)];

	memcpy(code, unbounded, sizeof(code));
	code[at] = byte;
	table = (struct code_bytes){(const uint8_t *)entries, sizeof(entries), 0x3000};
	read_code(code, sizeof(code), 0);
	table = (struct code_bytes){0};
	return rule(1) == rule(27) ? rule(1) : 0xdead;
}

TEST(tables_without_a_bound)
{
	CHECK_INT(rule_before_jump(0, 0x53, 29, 33), SP(2, 0));
	CHECK_INT(rule_before_jump(0, 0x53, 33, 29), SP(2, 0));
	/* nothing leads right behind the jump: it may be another's table */
	CHECK_INT(rule_before_jump(0, 0x53, 33, 33), NONE);
	/* into an instruction */
	CHECK_INT(rule_before_jump(0, 0x53, 30, 33), NONE);
	/* the second place has another state: nop in place of its pop */
	CHECK_INT(rule_before_jump(35, 0x90, 29, 33), NONE);
	/* the address of the table is overwritten before it is added: mov %r8d,%esi */
	CHECK_INT(rule_before_jump(18, 0xc6, 29, 33), NONE);
	/* another register is loaded: movslq (%rsi,%rcx,4),%rdx */
	CHECK_INT(rule_before_jump(14, 0x14, 29, 33), NONE);
	/* the address is added to another: add %rsi,%rdx */
	CHECK_INT(rule_before_jump(21, 0xf2, 29, 33), NONE);
	/* of 4 bytes: movslq becomes mov (%rsi,%rcx,4),%rcx */
	CHECK_INT(rule_before_jump(13, 0x8b, 29, 33), NONE);
}

/* ---- labels that tables name ---- */

/* 0: push %rbx; 1: lea 0x3000(%rip),%rsi; 8: jmp *(%rsi,%rax,8); 11: clc; jmp *(%rsi,%rax,8); 15:
 * xor %eax,%eax; jmp *(%rsi,%rax,8); 20: pop %rbx; ret; 22: push; pop; ret */
static const uint8_t computed_goto[] = {0x53, 0x48, 0x8d, 0x35, 0xf8, 0x1f, 0,    0,    0xff,
					0x24, 0xc6, 0xf8, 0xff, 0x24, 0xc6, 0x31, 0xc0, 0xff,
					0x24, 0xc6, 0x5b, 0xc3, 0x53, 0x5b, 0xc3};

static void go_to(uint64_t a, uint64_t b, uint64_t c)
{
	CHECK_INT(code_data_add(&pointers, 0x3008, TEXT + b), 0);
	CHECK_INT(code_data_add(&pointers, 0x3000, TEXT + a), 0);
	CHECK_INT(code_data_add(&pointers, 0x3010, TEXT + c), 0);
	code_data_sort(&pointers);
	begins(0);
	begins(22);
	read_code(computed_goto, sizeof(computed_goto), 0);
	code_data_fini(&pointers);
}

TEST(labels)
{
	const uint64_t raw[] = {TEXT + 11, TEXT + 15};

	go_to(11, 15, 20);
	RULES({8, SP(2, 0)}, {11, SP(2, 0)}, {15, SP(2, 0)}, {17, SP(2, 0)});
	go_to(11, 15, 22); /* behind the table stands a function's address */
	RULES({15, SP(2, 0)}, {23, SP(2, 0)});
	go_to(11, 16, 20); /* into the middle of an instruction: that is no table */
	RULES({11, NONE}, {15, NONE});
	go_to(11, 21, 20); /* to a place with another state: neither */
	CHECK_INT(rule(11), NONE);
	go_to(22, 11, 15); /* a table of functions */
	CHECK_INT(rule(11), NONE);
	symbols = 0; /* then a place must have the state on its own */
	go_to(11, 15, 20);
	CHECK_INT(rule(15), SP(2, 0));
	go_to(11, 15, 22);
	CHECK_INT(rule(15), NONE);
	symbols = 1;
	/* without relocations the words are the addresses */
	code_data_add_part(&pointers,
			   &(struct code_bytes){(const uint8_t *)raw, sizeof(raw), 0x3000});
	begins(0);
	read_code(computed_goto, sizeof(computed_goto), 0);
	CHECK_INT(rule(15), SP(2, 0));
	code_data_fini(&pointers);
	/* nothing is known of the words */
	begins(0);
	read_code(computed_goto, sizeof(computed_goto), 0);
	CHECK_INT(rule(15), NONE);
	CHECK_INT(rule(20), SP(2, 0)); /* by its way out */
}
