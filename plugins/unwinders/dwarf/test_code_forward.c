/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/dwarf
/* Proofs along the ways out of code: small pieces of machine code, entered anywhere. */
#include "code/forward.h"
#include "test.h"
#include "cfi/x86_64.h"

#define TEXT 0x7f0000001000u

static struct forward *f;
static struct forward_code code;
static uint64_t starts_at[4];
static uint8_t returned[4];

/* From the first byte, and from where starts_at says. */
static void follow(const uint8_t *bytes, size_t n)
{
	struct forward_start starts[5] = {{TEXT, 0}};
	size_t k = 1;

	for (size_t i = 0; i < 4 && starts_at[i]; i++, k++)
		starts[k] = (struct forward_start){TEXT + starts_at[i], returned[i]};
	forward_free(f);
	code = (struct forward_code){.bytes = bytes, .len = n, .vaddr = TEXT};
	CHECK_INT(forward_new(&f, &code, starts, k), 0);
	memset(starts_at, 0, sizeof(starts_at));
	memset(returned, 0, sizeof(returned));
}

#define FOLLOW(...)                                   \
	static const uint8_t bytes[] = {__VA_ARGS__}; \
	follow(bytes, sizeof(bytes))

static int kind(uint64_t at)
{
	return forward_at(f, TEXT + at).kind;
}

/* 100 * words from sp to the CFA + the slot; by rbp: negative; 0: no proof. */
static int proof(uint64_t at)
{
	struct forward_proof p = forward_at(f, TEXT + at);
	int value = 100 * p.cfa + (p.slot == FORWARD_SLOT_LOST ? 99 : p.slot);

	return p.kind == FORWARD_BY_SP ? value : p.kind == FORWARD_BY_FP ? -value : 0;
}

/* {place, kind or proof} of each. */
static void check(int line, int (*found)(uint64_t), const int (*all)[2], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int value = found((uint64_t)all[i][0]);

		if (value != all[i][1])
			test_fail(__FILE__, line, "at %d is %d, expected %d", all[i][0], value,
				  all[i][1]);
	}
}

#define CHECK_ALL(found, ...)                                 \
	check(__LINE__, found, (const int[][2]){__VA_ARGS__}, \
	      sizeof((const int[][2]){__VA_ARGS__}) / sizeof(int[2]))
#define PROOFS(...) CHECK_ALL(proof, __VA_ARGS__)
#define KINDS(...) CHECK_ALL(kind, __VA_ARGS__)

TEST(leaf)
{
	FOLLOW(0x31, 0xc0, 0xc3); /* xor %eax,%eax; ret */
	PROOFS({0, 100}, {2, 100});
	CHECK_INT(proof(1), 0); /* not an instruction that was followed */
}

TEST(pushed)
{
	/* push %rbx; sub $24,%rsp; nop; add $24,%rsp; pop %rbx; ret */
	FOLLOW(0x53, 0x48, 0x83, 0xec, 24, 0x90, 0x48, 0x83, 0xc4, 24, 0x5b, 0xc3);
	PROOFS({0, 100}, {1, 200}, {5, 500}, {10, 200}, {11, 100});
}

/* A sample in the middle needs no beginning. */
TEST(middle)
{
	/* mov (%rax),%rcx; add $0x28,%rsp; pop %rbp; ret */
	FOLLOW(0x48, 0x8b, 0x08, 0x48, 0x83, 0xc4, 0x28, 0x5d, 0xc3);
	PROOFS({0, 701}, {7, 201}, {8, 100});
}

TEST(frame_pointer)
{
	/* push %rbp; mov %rsp,%rbp; sub %rax,%rsp; nop; leave; ret */
	FOLLOW(0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4, 0x90, 0xc9, 0xc3);
	PROOFS({0, 100}, {1, 201}, {4, -201}, {7, -201}, {9, 100});
}

/* rbp is overwritten, and nothing restores it. */
TEST(lost)
{
	FOLLOW(0x48, 0x89, 0xc5, 0xc3); /* mov %rax,%rbp; ret */
	PROOFS({0, 199}, {3, 100});
}

TEST(loop_and_branch)
{
	/* push %rbx; 1: dec %eax; jne 1b; test %ecx,%ecx; jne 2f; pop %rbx; ret; 2: pop %rbx; ret
	 */
	FOLLOW(0x53, 0xff, 0xc8, 0x75, 0xfc, 0x85, 0xc9, 0x75, 2, 0x5b, 0xc3, 0x5b, 0xc3);
	PROOFS({1, 200}, {3, 200}, {7, 200}, {11, 200});
}

/* Two ways out that differ: no row before they part, and each its own behind it. */
TEST(contradiction)
{
	/* test %ecx,%ecx; jne 1f; pop %rbx; ret; 1: ret */
	FOLLOW(0x85, 0xc9, 0x75, 2, 0x5b, 0xc3, 0xc3);
	KINDS({0, FORWARD_CONTRADICTION}, {2, FORWARD_CONTRADICTION});
	PROOFS({4, 200}, {6, 100});
}

/* The same with one bit changed, which makes the ways agree: the test above is no accident. */
TEST(twin)
{
	/* test %ecx,%ecx; jne 1f; push %rbx; pop %rbx; ret; 1: ret */
	FOLLOW(0x85, 0xc9, 0x75, 3, 0x53, 0x5b, 0xc3, 0xc3);
	PROOFS({0, 100}, {5, 200});
}

/* A jump to where a register says proves nothing, nor do an endless loop or unknown bytes. */
TEST(nothing)
{
	FOLLOW(0x53, 0x85, 0xc9, 0x75, 2, 0xff, 0xe0, 0xeb, 0xfe);
	KINDS({0, FORWARD_NONE}, {5, FORWARD_NONE}, {7, FORWARD_NONE});
}

TEST(unknown_bytes)
{
	FOLLOW(0x85, 0xc9, 0x75, 1, 0x06, 0x5b, 0xc3); /* push %es is none */
	CHECK_INT(proof(0), 200);
	CHECK_INT(kind(4), FORWARD_NONE);
}

/* ret n, and sp from another register. */
TEST(odd_ends)
{
	FOLLOW(0x85, 0xc9, 0x75, 3, 0xc2, 8, 0, 0x48, 0x89, 0xc4, 0xc3);
	KINDS({0, FORWARD_NONE}, {4, FORWARD_NONE}, {7, FORWARD_NONE});
	CHECK_INT(proof(10), 100);
}

TEST(call)
{
	/* push %rbx; call *%rax; pop %rbx; ret */
	FOLLOW(0x53, 0xff, 0xd0, 0x5b, 0xc3);
	PROOFS({1, 200}, {0, 100});
}

/* What follows a call that does not return is another function: its return address would be 8 off.
 */
TEST(call_of_no_return)
{
	/* push %rbx; call *%rax; push %rbp; pop %rbp; ret */
	FOLLOW(0x53, 0xff, 0xd0, 0x55, 0x5d, 0xc3);
	KINDS({1, FORWARD_NONE}, {0, FORWARD_NONE});
	CHECK_INT(proof(3), 100);
}

/* A way that needs no call to return counts more than a way that does. */
TEST(stronger)
{
	/* test %ecx,%ecx; jne 1f; call *%rax; pop; pop; ret; 1: pop %rbx; pop; pop; pop; ret */
	FOLLOW(0x85, 0xc9, 0x75, 5, 0xff, 0xd0, 0x5b, 0x5b, 0xc3, 0x5b, 0x5b, 0x5b, 0x5b, 0xc3);
	CHECK_INT(kind(4), FORWARD_NONE); /* the way behind has an odd number of words */
	CHECK_INT(proof(0), 500);
}

/* A callee overwrites the red zone. */
TEST(red_zone)
{
	/* mov %rbp,-8(%rsp); mov %rax,%rbp; mov -8(%rsp),%rbp; ret */
	FOLLOW(0x48, 0x89, 0x6c, 0x24, 0xf8, 0x48, 0x89, 0xc5, 0x48, 0x8b, 0x6c, 0x24, 0xf8, 0xc3);
	PROOFS({0, 100}, {5, 101}, {8, 101});
}

/* The bytes of one instruction are another's from its middle: no row for either. */
TEST(overlap)
{
	starts_at[0] = 1;
	FOLLOW(0x04, 0x90, 0xc3); /* add $0x90,%al; ret, and nop; ret */
	KINDS({0, FORWARD_CONTRADICTION}, {1, FORWARD_CONTRADICTION});
	CHECK_INT(proof(2), 100);
}

/* Where only a return address was seen, the row of the call itself is at the byte before it. */
TEST(returned_rows)
{
	static const uint8_t bytes[] = {0xff, 0xd0, 0x5b, 0xc3, 0xc3};
	struct forward_start start = {TEXT + 2, 1};
	struct table_build build;
	struct sheet sheet = {0};
	struct rows rows = {0};
	const uint32_t *special;
	uint32_t *words = NULL;
	uint64_t n = 0;

	forward_free(f);
	code = (struct forward_code){.bytes = bytes, .len = sizeof(bytes), .vaddr = TEXT};
	CHECK_INT(forward_new(&f, &code, &start, 1), 0);
	CHECK_INT(table_build_init(&build), 0);
	CHECK_INT(forward_rows(f, &build, &rows), 0);
	CHECK_INT(sheet_add_rules(&sheet, &rows), 0);
	CHECK_INT(table_pack(&build, &sheet, X86_64_MACHINE, &words, &n), 0);
	CHECK_INT(table_lookup(words, n, TEXT, &special), DWARF_RULE_NONE);
	CHECK_INT(table_lookup(words, n, TEXT + 1, &special), DWARF_RULE_SP(2, 0));
	CHECK_INT(table_lookup(words, n, TEXT + 2, &special), DWARF_RULE_SP(2, 0));
	CHECK_INT(table_lookup(words, n, TEXT + 3, &special), DWARF_RULE_SP(1, 0));
	CHECK_INT(table_lookup(words, n, TEXT + 4, &special), DWARF_RULE_NONE);
	free(words);
	sheet_fini(&sheet);
	table_build_fini(&build);
}

/* Where no way out proves anything, the use of rbp does. */
TEST(used_frame_pointer)
{
	/* push %rbp; mov %rsp,%rbp; mov %rdi,-8(%rbp); nop; call *%rax; mov -8(%rbp),%rax; nop; jmp
	 * *%rax */
	FOLLOW(0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0x7d, 0xf8, 0x90, 0xff, 0xd0, 0x48, 0x8b, 0x45,
	       0xf8, 0x90, 0xff, 0xe0);
	PROOFS({0, 100}, {1, 201}, {4, -201}, {8, -201}, {9, -201}, {11, -201}, {15, 0}, {16, 0});
	CHECK_INT(forward_at(f, TEXT + 4).used, 1);
}

/* The same at rbp: it points to an object. Above: arguments, which say nothing. */
TEST(used_as_a_pointer)
{
	/* mov -8(%rbp),%rax; mov 8(%rbp),%rcx; jmp *%rax */
	FOLLOW(0x48, 0x8b, 0x45, 0xf8, 0x48, 0x8b, 0x4d, 0x08, 0xff, 0xe0);
	KINDS({0, FORWARD_CONTRADICTION}, {4, FORWARD_CONTRADICTION}, {8, FORWARD_NONE});
}

TEST(used_for_arguments)
{
	FOLLOW(0x48, 0x8b, 0x45, 0x10, 0xff, 0xe0); /* mov 16(%rbp),%rax; jmp *%rax */
	KINDS({0, FORWARD_NONE});
}

/* leave; pop %rcx; jmp *%rcx */
TEST(leave_and_jump)
{
	FOLLOW(0xc9, 0x59, 0xff, 0xe1);
	PROOFS({0, -201}, {1, 0});
}

/* A way out counts, whatever rbp is used for. */
TEST(used_and_proved)
{
	/* mov -8(%rbp),%rax; add $8,%rsp; pop %rbp; ret */
	FOLLOW(0x48, 0x8b, 0x45, 0xf8, 0x48, 0x83, 0xc4, 0x08, 0x5d, 0xc3);
	PROOFS({0, 301}, {8, 201});
	CHECK_INT(forward_at(f, TEXT).used, 0);
}

/* The rule of the caller that returns to `at`, or is interrupted there. */
static uint32_t rule_at(uint64_t at, int exact)
{
	struct table_build build;
	struct rows rows = {0};
	uint32_t rule = DWARF_RULE_NONE;

	CHECK_INT(table_build_init(&build), 0);
	CHECK_INT(forward_rows(f, &build, &rows), 0);
	for (size_t i = 0; i < rows.n && ROW_VADDR(rows.p[i]) <= TEXT + at - !exact; i++)
		rule = ROW_RULE(rows.p[i]);
	rows_fini(&rows);
	table_build_fini(&build);
	return rule;
}

/* A return address that code has pushed itself, behind an instruction that is no call. */
TEST(pushed_return_address)
{
	/* nop; repz ret; add $40,%rsp; ret */
	static const uint8_t bytes[] = {0x90, 0xf3, 0xc3, 0x48, 0x83, 0xc4, 0x28, 0xc3};

	starts_at[0] = 3;
	follow(bytes, sizeof(bytes));
	CHECK_INT(rule_at(3, 0), DWARF_RULE_SP(1, 0)); /* not seen as one */
	starts_at[0] = 3;
	returned[0] = 1;
	follow(bytes, sizeof(bytes));
	CHECK_INT(rule_at(1, 1), DWARF_RULE_SP(1, 0));
	CHECK_INT(rule_at(3, 0), DWARF_RULE_SP(6, 0));
	CHECK_INT(rule_at(3, 1), DWARF_RULE_SP(6, 0));
}

/* .. of one byte: which of the two is meant is not known. */
TEST(pushed_behind_one_byte)
{
	static const uint8_t bytes[] = {0x90, 0xc3, 0x48, 0x83, 0xc4, 0x28, 0xc3};

	starts_at[0] = 2;
	returned[0] = 1;
	follow(bytes, sizeof(bytes));
	CHECK_INT(rule_at(1, 1), DWARF_RULE_NONE);
	CHECK_INT(rule_at(2, 0), DWARF_RULE_NONE);
	CHECK_INT(rule_at(0, 1), DWARF_RULE_SP(1, 0));
}
