/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by following instructions: small functions in machine code. */
#include "code.h"
#include "insn.h"
#include "test.h"
#include "x86_64.h"

#define TEXT 0x1000u

static struct table_build build;
static struct rows known;
static struct sheet sheet;
static uint32_t *words;
static uint64_t n_words;
static struct code_entries sure, maybe;

static void follow(const uint8_t *code, size_t n)
{
	struct code c = {code, n, TEXT, &known};

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
}

static void begins(uint32_t at)
{
	CHECK_INT(code_entries_add(&sure, TEXT + at), 0);
}

static uint32_t rule(uint32_t at)
{
	const uint32_t *special;

	return words ? table_lookup(words, n_words, TEXT + at, &special) : DWARF_RULE_NONE;
}

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

		CHECK_INT(insn_decode(known_lengths[i].code, sizeof(known_lengths[i].code), &in),
			  0);
		CHECK_INT(in.len, len);
		for (size_t n = 0; n < len; n++) /* truncated */
			CHECK_INT(insn_decode(known_lengths[i].code, n, &in), -1);
	}
}

TEST(pushes_and_pops)
{
	begins(0);
	/* push %r13; push %rbp; sub $24,%rsp; nop; add $24,%rsp; pop %rbp; pop %r13; ret */
	FOLLOW(0x41, 0x55, 0x55, 0x48, 0x83, 0xec, 24, 0x90, 0x48, 0x83, 0xc4, 24, 0x5d, 0x41, 0x5d,
	       0xc3, 0xcc);
	CHECK_INT(rule(0), DWARF_RULE_SP(1, 0));
	CHECK_INT(rule(2), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule(3), DWARF_RULE_SP(3, 2));
	CHECK_INT(rule(7), DWARF_RULE_SP(6, 2));
	CHECK_INT(rule(12), DWARF_RULE_SP(3, 2));
	CHECK_INT(rule(13), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule(15), DWARF_RULE_SP(1, 0));
	CHECK_INT(rule(16), DWARF_RULE_NONE); /* int3: never reached */
}

TEST(frame_pointers)
{
	begins(0);
	/* push %rbp; mov %rsp,%rbp; and $-32,%rsp; sub %rax,%rsp; nop; leave; ret */
	FOLLOW(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x29, 0xc4, 0x90, 0xc9, 0xc3);
	CHECK_INT(rule(1), DWARF_RULE_SP(2, 1));
	CHECK_INT(rule(4), DWARF_RULE_FP(2, 1));
	CHECK_INT(rule(11), DWARF_RULE_FP(2, 1));
	CHECK_INT(rule(13), DWARF_RULE_SP(1, 0));
}

TEST(branches)
{
	begins(0);
	/* test; je +2; push %rbx; pop %rbx; ret */
	FOLLOW(0x85, 0xff, 0x74, 2, 0x53, 0x5b, 0xc3);
	CHECK_INT(rule(5), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule(6), DWARF_RULE_SP(1, 0));
	/* je +1 over a push to a ret: one place with two depths, nothing is certain */
	begins(0);
	FOLLOW(0x85, 0xff, 0x74, 1, 0x53, 0xc3);
	for (uint32_t i = 0; i < 6; i++)
		CHECK_INT(rule(i), DWARF_RULE_NONE);
	/* a return with something pushed */
	begins(0);
	FOLLOW(0x53, 0xc3);
	CHECK_INT(rule(0), DWARF_RULE_NONE);
	CHECK_INT(rule(1), DWARF_RULE_NONE);
	/* into the middle of an instruction */
	begins(0);
	FOLLOW(0x74, 1, 0xb8, 0xc3, 0, 0, 0, 0xc3);
	CHECK_INT(rule(0), DWARF_RULE_NONE);
}

TEST(what_cannot_be_followed)
{
	begins(0);
	/* push %rbx; mov (%rdi),%rsp; nop: up to there, not beyond */
	FOLLOW(0x53, 0x48, 0x8b, 0x27, 0x90, 0xc3);
	CHECK_INT(rule(0), DWARF_RULE_SP(1, 0));
	CHECK_INT(rule(1), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule(4), DWARF_RULE_NONE);
	begins(0);
	FOLLOW(0x5b, 0x90, 0xc3); /* pops its own return address */
	CHECK_INT(rule(0), DWARF_RULE_SP(1, 0));
	CHECK_INT(rule(1), DWARF_RULE_NONE);
}

TEST(calls_that_do_not_return)
{
	/* 0: push %rbx; call 8; int3 int3; 8: hlt; padding; 16: push, call 8, then 22: another
	 * function: ret */
	static const uint8_t code[] = {0x53, 0xe8, 2,    0,    0,    0,    0xcc, 0xcc,
				       0xf4, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
				       0x53, 0xe8, 0xf2, 0xff, 0xff, 0xff, 0x90, 0xc3};

	begins(0);
	begins(16);
	follow(code, sizeof(code));
	CHECK_INT(rule(1), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule(8), DWARF_RULE_SP(1, 0));
	CHECK_INT(rule(17), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule(22), DWARF_RULE_NONE);
	/* and when it is known that a function begins there, it has its own rows */
	begins(0);
	begins(16);
	begins(22);
	follow(code, sizeof(code));
	CHECK_INT(rule(17), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule(22), DWARF_RULE_SP(1, 0));
}

TEST(pointers_are_followed_with_care)
{
	/* 0: ret; 4: push %rbx; pop %rbx; ret; 8: jmp *%rax: a label of a switch, perhaps */
	static const uint8_t code[] = {0xc3, 0xcc, 0xcc, 0xcc, 0x53, 0x5b, 0xc3, 0xcc, 0xff, 0xe0};

	begins(0);
	CHECK_INT(code_entries_add(&maybe, TEXT + 4), 0);
	CHECK_INT(code_entries_add(&maybe, TEXT + 8), 0);
	CHECK_INT(code_entries_add(&maybe, TEXT + 5000), 0);
	follow(code, sizeof(code));
	CHECK_INT(rule(5), DWARF_RULE_SP(2, 0));
	CHECK_INT(rule(8), DWARF_RULE_NONE);
}

TEST(what_is_known_is_kept)
{
	CHECK_INT(rows_add(&known, TEXT, DWARF_RULE_SP(9, 0)), 0);
	CHECK_INT(rows_add(&known, TEXT + 2, DWARF_RULE_NONE), 0);
	begins(0);
	begins(2);
	FOLLOW(0x53, 0xc3, 0x90, 0xc3);
	CHECK_INT(rule(0), DWARF_RULE_NONE);
	CHECK_INT(rule(2), DWARF_RULE_SP(1, 0));
}
