/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/dwarf
/* Tables from CFI and Go function tables that are put together by hand. */

#include <fusee/plugin.h>

#include "cfi/cfi.h"
#include "go/gorows.h"
#include "test.h"
#include "cfi/x86_64.h"

#define TEXT 0x10000u
#define TEXT_END 0x300000u
#define SECTION 0x400000u
#define SP DWARF_RULE_SP
#define FP DWARF_RULE_FP
#define NONE DWARF_RULE_NONE

/* ---- a small assembler ---- */

static uint8_t out[1 << 20];
static size_t len, entry_at;
static int debug; /* writing .debug_frame */

static void put(uint64_t v, int size)
{
	for (int i = 0; i < size; i++)
		out[len++] = i < 8 ? (uint8_t)(v >> 8 * i) : 0;
}

static void bytes(const void *p, size_t n)
{
	memcpy(out + len, p, n);
	len += n;
}
#define CODE(...) bytes((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void begin(void)
{
	entry_at = len;
	put(0, 4);
}

static void end(void)
{
	uint32_t n;

	while (len % 8)
		out[len++] = 0; /* DW_CFA_nop */
	n = (uint32_t)(len - entry_at - 4);
	memcpy(out + entry_at, &n, 4);
}

/* CFA = sp + 8, return address at CFA - 8. Returns where it is. */
static size_t cie(const char *augmentation, int encoding)
{
	size_t at = len;

	begin();
	put(debug ? 0xffffffff : 0, 4);
	put(debug ? 4 : 1, 1);
	bytes(augmentation, strlen(augmentation) + 1);
	if (debug)
		CODE(8, 0);
	CODE(1, 0x78, 16);
	if (augmentation[0] == 'z')
		CODE(1, (uint8_t)encoding);
	CODE(0x0c, 7, 8, 0x90, 1);
	end();
	return at;
}

static void fde(size_t cie_at, uint64_t lo, uint64_t n)
{
	begin();
	if (debug) {
		put(cie_at, 4);
		put(lo, 8);
		put(n, 8);
		return;
	}
	put(len - cie_at, 4);
	put(lo - (SECTION + len), 4);
	put(n, 4);
	put(0, 1);
}

static void start(void)
{
	len = 0;
	debug = 0;
}

/* ---- what comes out ---- */

static struct table_build build;
static struct sheet sheet;
static uint32_t *words;
static uint64_t n_words;
static const uint32_t *special;

static void fresh(void)
{
	sheet_fini(&sheet);
	table_build_fini(&build);
	free(words);
	words = NULL;
	n_words = 0;
	CHECK_INT(table_build_init(&build), 0);
	build.n_texts = 1;
	build.text[0].lo = TEXT;
	build.text[0].hi = TEXT_END;
}

static int read_section(size_t n)
{
	uint8_t *copy = malloc(n ? n : 1); /* of this size, so that the sanitizer sees the end */
	struct cfi_section s = {copy, n, SECTION, debug};
	int err;

	fresh();
	memcpy(copy, out, n);
	err = cfi_read(&build, &s, &sheet);
	free(copy);
	if (sheet.rules.n)
		CHECK_INT(table_pack(&build, &sheet, X86_64_MACHINE, &words, &n_words), 0);
	return err;
}

static uint32_t rule(uint64_t pc)
{
	special = NULL;
	return words ? table_lookup(words, n_words, pc, &special) : DWARF_RULE_NONE;
}

struct expected {
	uint64_t pc;
	uint32_t rule;
};

/* {place, rule} of each. */
static void check_rules(int line, const struct expected *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rule(all[i].pc) != all[i].rule)
			test_fail(__FILE__, line, "the rule at %#lx is %#x, expected %#x",
				  (long)all[i].pc, rule(all[i].pc), all[i].rule);
}

#define RULES(...)                                                    \
	check_rules(__LINE__, (const struct expected[]){__VA_ARGS__}, \
		    sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected))

static uint32_t kind(uint64_t pc)
{
	rule(pc);
	return special ? special[0] & 0xff : 0;
}

static uint32_t flags(void)
{
	return special[0] >> 16;
}

/* Ends the last entry, too. */
static void end_of_section(void)
{
	end();
	CHECK_INT(read_section(len), 0);
}

/* One function of 64 bytes at TEXT + 0x100 with these instructions behind its CIE's. */
#define F (TEXT + 0x100)
#define ONE(...)                             \
	do {                                 \
		start();                     \
		fde(cie("zR", 0x1b), F, 64); \
		CODE(__VA_ARGS__);           \
		end_of_section();            \
	} while (0)

/* Such a function has rules of this kind from its begin on. */
#define KIND(expected, ...)                   \
	do {                                  \
		ONE(__VA_ARGS__);             \
		CHECK_INT(kind(F), expected); \
	} while (0)

/* ---- tests ---- */

TEST(a_function_with_a_frame_pointer)
{
	/* push %rbp; mov %rsp,%rbp; ...; leave; ret */
	ONE(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x41 + 19, 0x0c, 7, 8, 0xc6);
	RULES({F - 1, NONE}, {F, SP(1, 0)}, {F + 1, SP(2, 1)}, {F + 3, SP(2, 1)}, {F + 4, FP(2, 1)},
	      {F + 23, FP(2, 1)}, {F + 24, SP(1, 0)}, {F + 63, SP(1, 0)}, {F + 64, NONE});
	CHECK_INT(build.fdes, 1);
	CHECK_INT(build.damaged, 0);
}

TEST(remembered_states)
{
	ONE(0x41, 0x0e, 16, 0x0a, 0x41, 0x0e, 8, 0x41, 0x0b, 0x41, 0x0e, 32);
	RULES({F + 1, SP(2, 0)}, {F + 2, SP(1, 0)}, {F + 3, SP(2, 0)}, {F + 4, SP(4, 0)});
}

TEST(advances_of_all_widths)
{
	ONE(0x02, 3, 0x0e, 16, 0x03, 4, 0, 0x0e, 24, 0x04, 5, 0, 0, 0, 0x0e, 32, 0x2e, 8);
	RULES({F + 2, SP(1, 0)}, {F + 3, SP(2, 0)}, {F + 7, SP(3, 0)}, {F + 12, SP(4, 0)});
}

TEST(end_of_stack)
{
	KIND(DWARF_END, 0x07, 16);
	CHECK_INT(kind(F + 63), DWARF_END);
	CHECK_INT(rule(F + 64), NONE);
}

TEST(plt)
{
	for (uint8_t threshold = 5; threshold <= 11; threshold++) {
		ONE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, (uint8_t)(0x30 + threshold), 0x2a, 0x33,
		    0x24, 0x22);
		CHECK_INT(kind(F), DWARF_PLT);
		CHECK_INT(special[3], threshold);
	}
	/* another mask, another register */
	KIND(DWARF_EXPRESSION, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3e, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
	     0x22);
	KIND(DWARF_EXPRESSION, 0x0f, 11, 0x76, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
	     0x22);
}

TEST(realigned_stack)
{
	/* lea 8(%rsp),%r10: CFA r10; then rbp at rbp + 0, CFA = *(rbp - 8) */
	ONE(0x45, 0x0c, 10, 0, 0x45, 0x10, 6, 2, 0x76, 0, 0x45, 0x0f, 3, 0x76, 0x78, 6);
	CHECK_INT(kind(F + 5), DWARF_REG);
	CHECK_INT(special[0] >> 8 & 0xff, 10);
	CHECK_INT(special[1], 0);
	CHECK_INT(flags(), 0);
	CHECK_INT(kind(F + 10), DWARF_REG);
	CHECK_INT(flags(), DWARF_FP_AT_FP);
	CHECK_INT(kind(F + 15), DWARF_DEREF);
	CHECK_INT(special[0] >> 8 & 0xff, 6);
	CHECK_INT((int32_t)special[1], -8);
	CHECK_INT((int32_t)special[2], 0);
	CHECK_INT(special[3], 0);
	CHECK_INT(flags(), DWARF_FP_AT_FP);
	/* deref and a constant, both spellings */
	KIND(DWARF_DEREF, 0x0f, 5, 0x77, 16, 6, 0x23, 24);
	CHECK_INT(special[3], 24);
	KIND(DWARF_DEREF, 0x0f, 5, 0x77, 16, 6, 0x38, 0x22);
	CHECK_INT(special[3], 8);
}

TEST(places_out_of_the_ordinary)
{
	ONE(0x0e, 0xf8, 0x7f); /* CFA = sp + 16376, the last that a plain rule holds */
	CHECK_INT(rule(F), SP(2047, 0));
	KIND(DWARF_REG, 0x0e, 0x80, 0x80, 1);
	CHECK_INT(special[1], 16384);
	KIND(DWARF_REG, 0x0c, 3, 16, 0x86, 2); /* CFA = rbx + 16 */
	CHECK_INT(special[0] >> 8 & 0xff, 3);
	CHECK_INT(flags(), DWARF_FP_SAVED);
	CHECK_INT((int32_t)special[2], -16);
	ONE(0x09, 6, 12); /* rbp in r12 */
	CHECK_INT(flags() + 0 * kind(F), DWARF_FP_IN_REG);
	CHECK_INT(special[2], 12);
	KIND(DWARF_REG, 0x09, 16, 0); /* return address in rax */
	CHECK_INT(flags(), DWARF_RA_IN_REG);
	CHECK_INT(special[3], 0);
	KIND(DWARF_REG, 0x90, 2); /* return address at CFA - 16 */
	CHECK_INT(flags(), DWARF_RA_AT);
	CHECK_INT((int32_t)special[3], -16);
	KIND(DWARF_REG, 0x07, 6); /* rbp undefined */
	CHECK_INT(flags(), DWARF_FP_UNKNOWN);
	KIND(DWARF_REG, 0x86, 20); /* rbp saved too far away for a slot */
	CHECK_INT(flags(), DWARF_FP_SAVED);
	CHECK_INT((int32_t)special[2], -160);
	KIND(DWARF_REG, 0x0c, 7, 12); /* not a multiple of 8 */
	CHECK_INT(special[1], 12);
}

TEST(what_no_rule_can_say)
{
	KIND(DWARF_EXPRESSION, 0x0f, 1, 0x30);     /* CFA = 0 */
	KIND(DWARF_EXPRESSION, 0x87, 2);           /* the caller's sp is saved somewhere */
	KIND(DWARF_EXPRESSION, 0x16, 16, 1, 0x30); /* the return address is 0 */
	KIND(DWARF_EXPRESSION, 0x08, 16);          /* the return address is this frame's */
	KIND(DWARF_REG, 0x14, 7, 0);               /* sp is the CFA: what is so anyway */
}

TEST(damaged_functions)
{
	KIND(DWARF_EXPRESSION, 0x0e, 16, 0x41, 0x0b); /* nothing to restore */
	CHECK_INT(kind(F + 63), DWARF_EXPRESSION);
	CHECK_INT(rule(F + 64), NONE);
	CHECK_INT(build.damaged, 1);
	KIND(DWARF_EXPRESSION, 0x3f);             /* no such instruction */
	KIND(DWARF_EXPRESSION, 0x0f, 0x7f, 0x77); /* an expression longer than the entry */
	KIND(DWARF_EXPRESSION, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1);
	KIND(DWARF_EXPRESSION, 0x0f, 1, 0x30, 0x0d, 6); /* another register for an expression */
	CHECK_INT(build.damaged, 1);
	start(); /* 33 states remembered */
	fde(cie("zR", 0x1b), F, 64);
	for (int i = 0; i < 33; i++)
		CODE(0x0a);
	end_of_section();
	CHECK_INT(build.damaged, 1);
}

TEST(rows_beyond_the_function_are_not_its)
{
	ONE(0x41 + 62, 0x0e, 16, 0x41, 0x0e, 24, 0x41, 0x0e, 32);
	RULES({F + 62, SP(1, 0)}, {F + 63, SP(2, 0)}, {F + 64, NONE}, {F + 65, NONE});
}

TEST(overlapping_functions)
{
	size_t at;

	start();
	at = cie("zR", 0x1b);
	fde(at, F, 64);
	CODE(0x0e, 16);
	end();
	fde(at, F, 32); /* the same start: the first one counts */
	CODE(0x0e, 24);
	end();
	fde(at, F + 16, 16); /* begins nearer */
	CODE(0x0e, 32);
	end();
	fde(at, TEXT_END - 8, 16); /* half outside */
	end();
	fde(at, 0, 16); /* a function that the linker threw away */
	end();
	fde(at, F + 128, 0); /* empty */
	end_of_section();
	RULES({F, SP(2, 0)}, {F + 15, SP(2, 0)}, {F + 16, SP(4, 0)}, {F + 31, SP(4, 0)},
	      {F + 32, NONE});
	CHECK_INT(build.outside, 3);
	CHECK_INT(build.damaged, 0);
}

/* The value and its length of one pointer by this encoding, at TEXT + 0x80. */
static void encoded(int encoding)
{
	static const int size[16] = {
		[0] = 8, [2] = 2, [3] = 4, [4] = 8, [10] = 2, [11] = 4, [12] = 8};
	uint64_t lo = TEXT + 0x80, at;

	start();
	at = cie("zR", encoding);
	begin();
	put(len - at, 4);
	put(encoding & 0x10 ? lo - (SECTION + len) : lo, size[encoding & 15]);
	put(0x20, size[encoding & 15]);
	put(0, 1);
	CODE(0x0e, 16);
	end_of_section();
	RULES({lo, SP(2, 0)}, {lo + 0x1f, SP(2, 0)}, {lo + 0x20, NONE});
}

TEST(pointer_encodings)
{
	encoded(0x00); /* absptr */
	encoded(0x03); /* udata4 */
	encoded(0x04);
	encoded(0x0b);
	encoded(0x0c);
	encoded(0x10);
	encoded(0x1b); /* pcrel sdata4: what gcc writes */
	encoded(0x1c);
	start(); /* indirect, text-relative: nobody knows where that is */
	fde(cie("zR", 0x9b), F, 64);
	end_of_section();
	CHECK_INT(sheet.rules.n, 0);
	CHECK_INT(build.damaged, 1);
	start();
	fde(cie("zR", 0x2b), F, 64);
	end_of_section();
	CHECK_INT(sheet.rules.n, 0);
}

TEST(augmentations)
{
	size_t at;

	start(); /* zPLR: a personality, an LSDA encoding */
	at = len;
	begin();
	put(0, 4);
	CODE(1, 'z', 'P', 'L', 'R', 0, 1, 0x78, 16, 7, 0x9b, 1, 2, 3, 4, 0x1b, 0x1b, 0x0c, 7, 8,
	     0x90, 1);
	end();
	begin();
	put(len - at, 4);
	put(F - (SECTION + len), 4);
	put(64, 4);
	CODE(4, 9, 9, 9, 9, 0x0e, 16);
	end_of_section();
	CHECK_INT(rule(F), SP(2, 0));
	start(); /* a letter that says who knows what */
	fde(cie("zRQ", 0x1b), F, 64);
	end_of_section();
	CHECK_INT(sheet.rules.n, 0);
	CHECK_INT(build.damaged, 1);
}

TEST(signal_frames)
{
	static const uint8_t ucontext[] = {0x0f, 4,    0x77, 0xa0, 1,    6,    0x10, 6,
					   3,    0x77, 0xf8, 0,    0x10, 7,    3,    0x77,
					   0xa0, 1,    0x10, 16,   3,    0x77, 0xa8, 1};

	start();
	fde(cie("zRS", 0x1b), F, 64);
	bytes(ucontext, sizeof(ucontext));
	end_of_section();
	CHECK_INT(kind(F), DWARF_SIGNAL);
	CHECK_INT(build.signals, 1);
	start(); /* a signal frame that keeps its registers in other places */
	fde(cie("zRS", 0x1b), F, 64);
	CODE(0x0e, 16);
	end_of_section();
	CHECK_INT(kind(F), DWARF_EXPRESSION);
}

TEST(debug_frame)
{
	size_t at;

	start();
	debug = 1;
	at = cie("", 0);
	fde(at, F, 64);
	CODE(0x0e, 16);
	end_of_section();
	CHECK_INT(rule(F), SP(2, 0));
	/* 64-bit DWARF, and a CIE behind its FDE */
	start();
	debug = 1;
	put(0xffffffff, 4);
	put(8 + 16 + 8, 8);
	put(12 + 32, 8); /* the CIE's offset */
	put(F, 8);
	put(64, 8);
	CODE(0x0e, 24, 0, 0, 0, 0, 0, 0);
	CHECK_INT(len, 12 + 32);
	cie("", 0);
	CHECK_INT(read_section(len), 0);
	CHECK_INT(rule(F), SP(3, 0));
}

TEST(a_terminator_in_the_middle)
{
	start();
	fde(cie("zR", 0x1b), F, 16);
	end();
	put(0, 4);
	put(0, 4);
	fde(cie("zR", 0x1b), F + 16, 16);
	CODE(0x0e, 16);
	end();
	put(0, 4);
	CHECK_INT(read_section(len), 0);
	RULES({F, SP(1, 0)}, {F + 16, SP(2, 0)});
}

/* Truncated anywhere: the functions whose bytes are all there keep their rules, the others have
 * none. */
/* What is saved below sp from the start (the red zone) stays there; what was popped is back in rbp.
 */
TEST(popped_and_red_zone)
{
	size_t c;

	start();
	c = cie("zR", 0x1b);
	/* push rbp; 4 bytes on pop rbp: CFA = sp + 8, the place goes on to be named */
	fde(c, F, 64);
	CODE(0x41, 0x0e, 16, 0x86, 2, 0x44, 0x0e, 8);
	end();
	/* mov %rbp,-8(%rsp): saved at CFA - 16, below sp */
	fde(c, F + 64, 64);
	CODE(0x44, 0x86, 2);
	end_of_section();
	RULES({F + 1, SP(2, 1)}, {F + 5, SP(1, 0)}, {F + 64, SP(1, 0)}, {F + 68, SP(1, 1)});
}

TEST(truncated_at_every_byte)
{
	enum { FUNCTIONS = 12 };
	size_t ends[FUNCTIONS], total;

	start();
	total = cie("zR", 0x1b);
	for (int i = 0; i < FUNCTIONS; i++) {
		fde(total, F + 64 * i, 64);
		CODE(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x48, 0x0c, 7, 8, 0x41, 0x0b);
		end();
		ends[i] = len;
	}
	total = len;
	for (size_t n = 0; n <= total; n++) {
		int err = read_section(n);

		CHECK(!err || err == -EBADMSG);
		for (int i = 0; i < FUNCTIONS; i++) {
			uint64_t at = F + 64 * i;

			RULES({at, n >= ends[i] ? SP(1, 0) : NONE},
			      {at + 1, n >= ends[i] ? SP(2, 1) : NONE},
			      {at + 4, n >= ends[i] ? FP(2, 1) : NONE});
			/* behind leave: rbp is back */
			RULES({at + 12, n >= ends[i] ? SP(1, 0) : NONE},
			      {at + 13, n >= ends[i] ? FP(2, 1) : NONE});
		}
	}
}

/* Each byte in turn changed: nothing but the function that it belongs to, or all of them by the
 * CIE. */
TEST(every_byte_changed)
{
	size_t at, first, total;

	start();
	at = cie("zR", 0x1b);
	fde(at, F, 64);
	CODE(0x41, 0x0e, 16);
	end();
	first = len;
	fde(at, F + 64, 64);
	CODE(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6);
	end();
	total = len;
	for (size_t i = first; i < total; i++) {
		for (int bit = 0; bit < 8; bit++) {
			out[i] ^= (uint8_t)(1 << bit);
			read_section(total);
			if (i >= first + 12) /* behind the addresses */
				CHECK_INT(rule(F + 1), SP(2, 0));
			out[i] ^= (uint8_t)(1 << bit);
		}
	}
}

TEST(a_row_at_every_byte)
{
	start();
	fde(cie("zR", 0x1b), TEXT + 0x200, 256);
	for (int i = 0; i < 256; i++)
		CODE(0x0e, (uint8_t)(8 * (i % 15 + 1)), 0x41);
	end_of_section();
	for (uint32_t i = 0; i < 254; i++)
		CHECK_INT(rule(TEXT + 0x200 + i), SP(i % 15 + 1, 0));
	CHECK_INT(kind(TEXT + 0x2fe), DWARF_EXPRESSION);
	CHECK_INT(kind(TEXT + 0x2ff), DWARF_EXPRESSION);
	CHECK_INT(rule(TEXT + 0x300), NONE);
}

/* Lists of every density: a lookup finds what a walk finds, at each row and beside it. */
TEST(lookups_find_what_walks_find)
{
	uint64_t seed = 7;

	for (uint32_t step = 2; step < 400000; step *= 3) {
		uint64_t at = TEXT + 5;

		fresh();
		for (int i = 0; i < 500; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			CHECK_INT(rows_add(&sheet.rules, at, i % 7 ? SP(i % 100 + 1, 0) : 0), 0);
			at += 1 + (seed >> 33) % step;
		}
		CHECK_INT(table_pack(&build, &sheet, X86_64_MACHINE, &words, &n_words), 0);
		for (size_t i = 0; i < sheet.rules.n; i++) {
			uint64_t pc = ROW_VADDR(sheet.rules.p[i]);

			RULES({pc, ROW_RULE(sheet.rules.p[i])},
			      {pc - 1,
			       i ? ROW_RULE(sheet.rules
						    .p[i - (ROW_VADDR(sheet.rules.p[i - 1]) < pc)])
				 : NONE});
			if (i + 1 < sheet.rules.n)
				CHECK_INT(rule(ROW_VADDR(sheet.rules.p[i + 1]) - 1),
					  ROW_RULE(sheet.rules.p[i]));
		}
		RULES({0, NONE}, {UINT64_MAX, NONE});
	}
}

TEST(tables_that_would_be_too_big)
{
	fresh();
	CHECK_INT(table_pack(&build, &sheet, X86_64_MACHINE, &words, &n_words), -ENOENT);
	CHECK_INT(rows_add(&sheet.rules, TEXT, SP(1, 0)), 0);
	CHECK_INT(rows_add(&sheet.rules, TEXT + TABLE_MAX_SPAN, NONE), 0);
	CHECK_INT(table_pack(&build, &sheet, X86_64_MACHINE, &words, &n_words), -E2BIG);
	CHECK(!words);
}

TEST(more_specials_than_a_rule_can_name)
{
	fresh();
	for (int i = 2; i < (int)DWARF_MAX_SPECIALS; i++)
		CHECK_INT(table_special(&build, DWARF_REG, i, 0, 0), DWARF_RULE_SPECIAL(i));
	CHECK_INT(table_special(&build, DWARF_REG, -1, 0, 0), DWARF_RULE_EXPRESSION);
	CHECK_INT(table_special(&build, DWARF_REG, 77, 0, 0), DWARF_RULE_SPECIAL(77));
}

TEST(sources_over_each_other)
{
	struct rows over = {0}, ret = {0};

	fresh();
	CHECK_INT(rows_add(&over, 100, 1), 0);
	CHECK_INT(rows_add(&over, 110, NONE), 0);
	CHECK_INT(rows_add(&over, 120, 2), 0);
	CHECK_INT(rows_add(&over, 130, NONE), 0);
	CHECK_INT(rows_add(&sheet.rules, 90, 3), 0);
	CHECK_INT(rows_add(&sheet.rules, 115, 4), 0);
	CHECK_INT(rows_add(&sheet.rules, 125, 2), 0);
	CHECK_INT(rows_add(&sheet.rules, 140, NONE), 0);
	CHECK_INT(rows_overlay(&over, &sheet.rules, &ret), 0);
	{
		const uint64_t want[] = {ROW(90, 3),  ROW(100, 1), ROW(110, 3),
					 ROW(115, 4), ROW(120, 2), ROW(140, 0)};

		CHECK_INT(ret.n, sizeof(want) / 8);
		CHECK(!memcmp(ret.p, want, sizeof(want)));
	}
	CHECK_INT(rows_force(&ret, 95, 105, 9), 0);
	CHECK_INT(ret.n, 7);
	CHECK_INT(ret.p[1], ROW(95, 9));
	CHECK_INT(ret.p[2], ROW(105, 1));
	rows_fini(&over);
	rows_fini(&ret);
}

/* Rows at random addresses from `lo` on, with rules of a few, gaps among them. */
static void random_rows(struct rows *rows, unsigned int *seed, uint64_t lo, int most)
{
	*rows = (struct rows){0};
	for (int i = rand_r(seed) % (most + 1); i; i--) {
		lo += 1 + (unsigned int)rand_r(seed) % 4;
		CHECK_INT(rows_add(rows, lo, (unsigned int)rand_r(seed) % 3), 0);
	}
}

TEST(filled_in_place_as_by_a_list_of_its_own)
{
	unsigned int seed = 7;

	for (int round = 0; round < 20000; round++) {
		struct rows raw, more, all = {0}, want = {0};

		random_rows(&raw, &seed, 100, 12);
		random_rows(&more, &seed, 90 + (unsigned int)rand_r(&seed) % 50, 5);
		CHECK_INT(rows_overlay(&(struct rows){0}, &raw, &all), 0);
		CHECK_INT(rows_overlay(&all, &more, &want), 0);
		CHECK_INT(rows_fill(&all, &more), 0);
		CHECK_INT(all.n, want.n);
		CHECK(!want.n || !memcmp(all.p, want.p, want.n * sizeof(*want.p)));
		rows_fini(&raw);
		rows_fini(&more);
		rows_fini(&all);
		rows_fini(&want);
	}
}

/* ---- Go ---- */

struct go_file {
	uint32_t magic;
	const char *name;
	const uint8_t *pcsp;
	size_t pcsp_len;
	int flag;
};

/* A table of one function, `name`, of 64 bytes at TEXT. */
static void put_go(const struct go_file *g)
{
	int new = g->magic <= 0xfffffff1 && g->magic >= 0xfffffff0, old = g->magic == 0xfffffffb;
	size_t name_at, pctab_at, functab_at, fields, base;
	int word = new ? 4 : 8;

	start();
	put(g->magic, 4);
	CODE(0, 0, 1, 8);
	put(1, 8);
	fields = len;
	if (!old)
		len += (size_t)(new ? 56 : 48);
	else
		len += 3 * 8;
	name_at = len;
	bytes(g->name, strlen(g->name) + 1);
	pctab_at = len;
	put(0, 1);
	bytes(g->pcsp, g->pcsp_len);
	functab_at = old ? 16 : len;
	if (!old)
		len += (size_t)(3 * word);
	base = old ? 0 : functab_at;
	{
		size_t func = len;

		put(new ? 0 : TEXT, word);
		put(old ? name_at : 0, 4);
		put(0, 8);
		put(old ? pctab_at + 1 : 1, 4);
		put(0, 16);
		if (g->magic == 0xfffffff1)
			put(0, 4);
		CODE(0, (uint8_t)g->flag, 0, 0);
		func -= base;
		base = len;
		len = functab_at;
		put(new ? 0 : TEXT, word);
		put(func, word);
		put(new ? 64 : TEXT + 64, word);
		len = base;
	}
	base = len;
	len = fields;
	if (!old) {
		put(0, 8);
		if (new)
			put(TEXT, 8);
		put(name_at, 8);
		put(0, 16);
		put(pctab_at, 8);
		put(functab_at, 8);
	}
	len = base;
}

static int read_go(size_t n, const uint8_t *code, size_t code_len)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct fusee_go_table go;
	int err;

	memcpy(copy, out, n);
	fresh();
	err = fusee_go_open(&go, copy, n);
	if (!err) {
		go.code = code;
		go.code_len = code_len;
		go.code_vaddr = TEXT;
		err = go_read(&build, &go, &sheet.rules);
	}
	free(copy);
	if (!err && sheet.rules.n)
		CHECK_INT(table_pack(&build, &sheet, X86_64_MACHINE, &words, &n_words), 0);
	return err;
}

static void read_all_of_go(const struct go_file *g, const uint8_t *code, size_t code_len)
{
	put_go(g);
	CHECK_INT(read_go(len, code, code_len), 0);
}

static const uint32_t go_magics[] = {0xfffffff1, 0xfffffff0, 0xfffffffa, 0xfffffffb};

TEST(go_functions_of_every_version)
{
	/* push %rbp; mov %rsp,%rbp; sub $16,%rsp; nop; add $16,%rsp; pop %rbp; ret */
	static const uint8_t code[64] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 16,
					 0x90, 0x48, 0x83, 0xc4, 16,   0x5d, 0xc3};
	/* 0 for 1, 8 for 7, 24 for 5, 8 for 1, 0 for 1, no more */
	static const uint8_t pcsp[] = {2, 1, 16, 7, 32, 5, 31, 1, 15, 1, 0};

	for (size_t i = 0; i < 4; i++) {
		struct go_file g = {go_magics[i], "main.f", pcsp, sizeof(pcsp), 0};

		read_all_of_go(&g, code, sizeof(code));
		RULES({TEXT, SP(1, 0)}, {TEXT + 1, SP(2, 1)}, {TEXT + 7, SP(2, 1)},
		      {TEXT + 8, SP(4, 1)}, {TEXT + 13, SP(2, 1)}, {TEXT + 14, SP(1, 0)},
		      {TEXT + 15, NONE});
	}
}

TEST(go_before_1_21_saves_rbp_by_mov)
{
	/* sub $24,%rsp; mov %rbp,16(%rsp); lea 16(%rsp),%rbp; nop; mov 16(%rsp),%rbp; add; ret */
	static const uint8_t code[64] = {0x48, 0x83, 0xec, 24,   0x48, 0x89, 0x6c, 0x24, 16,
					 0x48, 0x8d, 0x6c, 0x24, 16,   0x90, 0x48, 0x8b, 0x6c,
					 0x24, 16,   0x48, 0x83, 0xc4, 24,   0xc3};
	static const uint8_t pcsp[] = {2, 4, 48, 20, 47, 1, 0};
	struct go_file g = {0xfffffff0, "main.f", pcsp, sizeof(pcsp), 0};

	read_all_of_go(&g, code, sizeof(code));
	RULES({TEXT + 3, SP(1, 0)}, {TEXT + 4, SP(4, 0)}, {TEXT + 13, SP(4, 0)},
	      {TEXT + 14, SP(4, 1)}, {TEXT + 24, SP(1, 0)});
}

TEST(go_functions_of_the_runtime)
{
	static const uint8_t code[64] = {0x90, 0x48, 0x8b, 0x66, 0x38, 0xff, 0xd0, 0xc3};
	static const uint8_t pcsp[] = {2, 64, 0};
	struct go_file g = {0xfffffff1, "runtime.goexit", pcsp, sizeof(pcsp), 0};

	read_all_of_go(&g, code, sizeof(code));
	CHECK_INT(kind(TEXT), DWARF_END);
	CHECK_INT(kind(TEXT + 63), DWARF_END);
	g.name = "runtime.goexit0"; /* not that one */
	read_all_of_go(&g, code, sizeof(code));
	CHECK_INT(rule(TEXT), SP(1, 0));
	g.name = "runtime.systemstack"; /* up to where it leaves its stack */
	read_all_of_go(&g, code, sizeof(code));
	CHECK_INT(rule(TEXT + 4), SP(1, 0));
	CHECK_INT(kind(TEXT + 5), DWARF_SWITCH);
	g.name = "runtime.mcall";
	read_all_of_go(&g, code, sizeof(code));
	CHECK_INT(rule(TEXT), SP(1, 0));
	CHECK_INT(kind(TEXT + 5), DWARF_END);
	g.name = "main.switches"; /* by its flag */
	g.flag = 2;
	read_all_of_go(&g, code, sizeof(code));
	CHECK_INT(kind(TEXT + 5), DWARF_SWITCH);
	g.name = "runtime.sigreturn__sigaction";
	read_all_of_go(&g, code, sizeof(code));
	CHECK_INT(kind(TEXT), DWARF_SIGNAL);
}

/* A function that leaves its stack but keeps its frame in rbp is found again, whatever sp is. */
TEST(go_frames_on_another_stack)
{
	static const uint8_t code[64] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83,
					 0xe4, 0xf0, 0xff, 0xd0, 0x5d, 0xc3};
	static const uint8_t pcsp[] = {2, 1, 16, 10, 15, 1, 0};
	struct go_file g = {0xfffffff1, "main.switches", pcsp, sizeof(pcsp), 2};

	read_all_of_go(&g, code, sizeof(code));
	CHECK_INT(rule(TEXT), SP(1, 0));
	CHECK_INT(kind(TEXT + 8), DWARF_REG);
	CHECK_INT(special[0] >> 8 & 0xff, 6);
	CHECK_INT(special[1], 16);
	CHECK_INT((int32_t)special[2], -16);
	CHECK_INT(flags(), DWARF_FP_SAVED | DWARF_OTHER_STACK);
}

TEST(go_tables_that_lie)
{
	static const uint8_t pcsp[] = {2, 1, 16, 10, 15, 1, 0};
	static const uint8_t negative[] = {2,    1,    0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 1,    1};
	static const uint8_t still[] = {2, 1, 16, 0, 16, 0, 16, 1};

	for (size_t i = 0; i < 4; i++) {
		struct go_file g = {go_magics[i], "main.f", pcsp, sizeof(pcsp), 0};
		size_t total;

		put_go(&g);
		total = len;
		for (size_t n = 0; n < total; n++) {
			int err = read_go(n, NULL, 0);

			CHECK(!err || err == -ENOENT || err == -EBADMSG);
			CHECK(rule(TEXT) == NONE || rule(TEXT) == SP(1, 0) ||
			      kind(TEXT) == DWARF_EXPRESSION);
		}
		g.pcsp = negative;
		g.pcsp_len = sizeof(negative);
		read_all_of_go(&g, NULL, 0);
		CHECK_INT(kind(TEXT), DWARF_EXPRESSION);
		CHECK_INT(build.damaged, 1);
		g.pcsp = still;
		g.pcsp_len = sizeof(still);
		read_all_of_go(&g, NULL, 0);
		CHECK_INT(kind(TEXT + 1), DWARF_EXPRESSION);
	}
}
