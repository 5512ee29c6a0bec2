/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/probes
/* Arguments of probes as notes describe them. The words of registers are those of struct user_regs
 * in bpf/kernel.h. */
#include "test.h"

#include "probes/operand.h"

#define RBP 4
#define RBX 5
#define R10 7
#define RAX 10
#define RCX 11
#define RDI 14
#define RSP 19
#define RIP 16

static const char *at; /* what is read */

static void reads(struct probe_operand want)
{
	struct operand_symbol symbol;
	struct probe_operand o;
	char why[128] = "";

	CHECK_INT(operand_find(at, 0, &o, &symbol, why, sizeof(why)), 0);
	CHECK(!symbol.p && !symbol.len);
	CHECK_STR(why, "");
	CHECK_INT(o.kind, want.kind);
	CHECK_INT(o.bits, want.bits);
	CHECK_INT(o.is_signed, want.is_signed);
	CHECK_INT(o.base, want.base);
	CHECK_INT(o.index, want.index);
	CHECK_INT(o.shift, want.shift);
	CHECK(o.number == want.number);
}

static void constant(const char *text, uint32_t bits, uint32_t is_signed, int64_t number)
{
	at = text;
	reads((struct probe_operand){OPERAND_NUMBER, bits, is_signed, NO_REGISTER, NO_REGISTER, 0,
				     number});
}

static void in(const char *text, uint32_t bits, uint32_t is_signed, uint32_t base, uint32_t shift)
{
	at = text;
	reads((struct probe_operand){OPERAND_REGISTER, bits, is_signed, base, NO_REGISTER, shift,
				     0});
}

static void memory(const char *text, uint32_t base, uint32_t index, uint32_t shift, int64_t number)
{
	at = text;
	reads((struct probe_operand){OPERAND_MEMORY, 32, 1, base, index, shift, number});
}

TEST(places)
{
	constant("-4@$-7", 32, 1, -7);
	constant("8@$0x10", 64, 0, 16);
	constant("8@$18446744073709551615", 64, 0, -1);
	in("-4@%edi", 32, 1, RDI, 0);
	in("8@%r10", 64, 0, R10, 0);
	in("1@%al", 8, 0, RAX, 0);
	in("-1@%bh", 8, 1, RBX, 8);
	in("2@%r10w", 16, 0, R10, 0);
	in("1@%dil", 8, 0, RDI, 0);
	in("1@%edi", 8, 0, RDI, 0); /* a part of it */
	memory("-4@112(%rsp)", RSP, NO_REGISTER, 0, 112);
	memory("-4@(%rax)", RAX, NO_REGISTER, 0, 0);
	memory("-4@-0x10(%rbp,%rcx,8)", RBP, RCX, 3, -16);
	memory("-4@(%rbp,%rcx)", RBP, RCX, 0, 0);
	memory("-4@8(,%rcx,4)", NO_REGISTER, RCX, 2, 8);
}

static void variable(const char *text, const char *name, int64_t number)
{
	struct operand_symbol symbol;
	struct probe_operand o;
	char why[128] = "";

	CHECK_INT(operand_find(text, 0, &o, &symbol, why, sizeof(why)), 0);
	CHECK_INT(symbol.len, strlen(name));
	CHECK(!memcmp(symbol.p, name, symbol.len));
	CHECK_INT(o.kind, OPERAND_MEMORY);
	CHECK_INT(o.base, RIP);
	CHECK_INT(o.index, NO_REGISTER);
	CHECK(o.number == number);
}

TEST(variables)
{
	variable("-4@NBuffers(%rip)", "NBuffers", 0);
	variable("-4@40+CheckpointStats(%rip) 8@%rax", "CheckpointStats", 40);
	variable("8@-8+of.12(%rip)", "of.12", -8);
	variable("8@_x$+0x10(%rip)", "_x$", 16);
	variable("8@abc-24(%rip)", "abc", -24);
	variable("1@4+a-6(%rip)", "a", -2);
}

static void refuses(const char *text, uint32_t number, const char *because)
{
	struct operand_symbol symbol;
	struct probe_operand o;
	char why[128] = "";

	CHECK_INT(operand_find(text, number, &o, &symbol, why, sizeof(why)), -ENOTSUP);
	CHECK(strstr(why, because));
}

TEST(others_are_refused)
{
	static const char *const texts[] = {"%edi",
					    "@%edi",
					    "4%edi",
					    "3@%edi",
					    "16@%xmm0",
					    "8f@%xmm0",
					    "8@%xmm0",
					    "8@%edi",
					    "-4@%ah",
					    "4@%",
					    "4@",
					    "4@$",
					    "4@$x",
					    "4@$0x",
					    "4@12",
					    "4@12(",
					    "4@12()",
					    "4@()",
					    "4@(,)",
					    "4@12(%rax",
					    "4@12(%eax)",
					    "4@12(%rip)",
					    "4@(%rip)",
					    "4@+x(%rip)",
					    "4@72x(%rip)",
					    "4@72+(%rip)",
					    "4@72+9(%rip)",
					    "4@x+(%rip)",
					    "4@x+y(%rip)",
					    "4@x@GOTPCREL(%rip)",
					    "4@x(%rip)(%rip)",
					    "4@x",
					    "4@(%rax,%rcx,3)",
					    "4@(%rax,%rcx,16)",
					    "4@(%rax,%rcx,)",
					    "4@(%rax,%ecx,4)",
					    "4@%eax,",
					    "4@%eaxx",
					    "4@%fs:8",
					    "--4@%eax",
					    "4@--1(%rax)",
					    "4@$1f",
					    "-0x4@%ah",
					    "4@(%rax)(%rax)",
					    "8@$18446744073709551616",
					    "8@$-9223372036854775809",
					    "4294967300@%eax"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		refuses(texts[i], 0, texts[i]);
	refuses("4@\n", 0, "at a place that is not read");
	refuses("4@0000000000000000000000000000000000000000000000000x", 0, "at a place");
	refuses("", 0, "has 0 arguments");
	refuses("4@%eax  8@%rax ", 2, "has 2 arguments");
	refuses("4@%eax  8f@%xmm0 ", 1, "has arg1 at '8f@%xmm0'");
}

TEST(by_number)
{
	struct operand_symbol symbol;
	struct probe_operand o;
	char why[128];

	CHECK_INT(operand_find(" 4@%eax  8@%rbx -1@$3 ", 1, &o, &symbol, why, sizeof(why)), 0);
	CHECK_INT(o.base, RBX);
	CHECK_INT(operand_find("8f@%xmm0 4@%eax", 1, &o, &symbol, why, sizeof(why)), 0);
	CHECK_INT(o.base, RAX);
}
