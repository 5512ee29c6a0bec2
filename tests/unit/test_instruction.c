// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/process
/* Where a probe costs least: at the first instruction that the kernel emulates, if the state there
 * is that at the begin. */
#include "process/instruction.h"
#include "test.h"

#define OF(kept, ...)                                                    \
	instruction_emulated((const uint8_t[]){__VA_ARGS__, 0x90, 0x90}, \
			     sizeof((const uint8_t[]){__VA_ARGS__}), kept)
#define AT(...) (int)OF(INSTRUCTION_THREE, __VA_ARGS__)
#define AT_FREE(...) (int)OF(INSTRUCTION_FIRST, __VA_ARGS__)

TEST(at_once)
{
	CHECK_INT(AT(0x55), 0);                               /* push %rbp */
	CHECK_INT(AT(0x41, 0x54, 0x55), 0);                   /* push %r12 */
	CHECK_INT(AT(0xe9, 1, 0, 0, 0), 0);                   /* jmp */
	CHECK_INT(AT(0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57), 4); /* endbr64; push %r15 */
}

TEST(behind_comparisons)
{
	CHECK_INT(AT(0x48, 0x89, 0xf8, 0x55), 3);                   /* mov %rdi,%rax; push */
	CHECK_INT(AT(0x48, 0x85, 0xff, 0x0f, 0x84, 0, 1, 0, 0), 3); /* test %rdi,%rdi; je */
	CHECK_INT(AT(0x48, 0x85, 0xff, 0x74, 1), 3);                /* the same, short */
	CHECK(AT(0x48, 0x81, 0xff, 0, 0x10, 0, 0, 0x0f, 0x87, 0, 1, 0, 0) ==
	      7);                                    /* cmp $0x1000,%rdi; ja */
	CHECK_INT(AT(0x48, 0x83, 0xff, 8, 0x53), 4); /* cmp $8,%rdi; push */
	CHECK_INT(AT(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x39, 0xfe, 0x77, 1), 7); /* cmp %rdi,%rsi */
}

/* What writes registers, or changes the stack, is not passed. */
TEST(not_passed)
{
	CHECK_INT(AT(0x48, 0x89, 0xfa, 0x55), 0);                   /* mov %rdi,%rdx; push */
	CHECK_INT(AT(0x48, 0x83, 0xec, 0x08, 0x55), 0);             /* sub $8,%rsp */
	CHECK_INT(AT(0x48, 0x85, 0xff, 0x48, 0x89, 0xfe, 0x55), 0); /* test; mov %rdi,%rsi */
	CHECK_INT(AT(0xc3, 0x55), 0);                               /* ret */
	CHECK_INT(AT(0x06, 0x55), 0);                               /* no instruction */
	CHECK_INT(AT(0x48, 0x85), 0);                               /* too short */
}

/* Where only the first argument is of use, other registers may be written. */
TEST(first_argument)
{
	CHECK_INT(AT_FREE(0x48, 0x89, 0xf8, 0x48, 0xc1, 0xe8, 0x1a, 0x75, 1),
		  7);                                        /* mov; shr; jne */
	CHECK_INT(AT_FREE(0x48, 0x8b, 0x3f, 0x55), 0);       /* mov (%rdi),%rdi */
	CHECK_INT(AT_FREE(0x48, 0x83, 0xef, 0x10, 0x55), 0); /* sub $16,%rdi */
	CHECK_INT(AT_FREE(0x48, 0x83, 0xec, 0x08, 0x55), 0); /* sub $8,%rsp */
	CHECK_INT(AT_FREE(0x5f, 0x55), 0);                   /* pop %rdi */
}
