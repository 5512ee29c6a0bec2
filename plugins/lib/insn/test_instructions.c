/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/insn
/* Instructions that a decoder gets wrong: the encodings that only a few programs have. */
#include <fusee/insn.h>
#include "test.h"

struct expected {
	uint8_t code[12], len, effect;
	int32_t value;
};

static void check(const struct expected *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct insn in;

		CHECK_INT(fusee_insn_decode(e[i].code, sizeof(e[i].code), &in), 0);
		CHECK_INT(in.len, e[i].len);
		CHECK_INT(in.effect, e[i].effect);
		CHECK_INT(in.value, e[i].value);
		for (size_t len = 0; len < e[i].len; len++) /* truncated */
			CHECK_INT(fusee_insn_decode(e[i].code, len, &in), -1);
	}
}

#define CHECK_ALL(e) check(e, sizeof(e) / sizeof((e)[0]))

TEST(prefixes)
{
	static const struct expected e[] = {
		{{0x66, 0x48, 0x81, 0xc4, 8, 0, 0, 0}, 8, INSN_ADD_SP, 8}, /* REX.W wins over 66 */
		{{0x66, 0x81, 0xc1, 8, 0}, 5, INSN_NOTHING, 0},
		{{0x48, 0x66, 0xb8, 1, 2},
		 5,
		 INSN_NOTHING,
		 0}, /* REX not before the opcode: none */
		{{0x40, 0x48, 0x83, 0xec, 8}, 5, INSN_ADD_SP, -8},
		{{0x67, 0x8d, 0x44, 0x24, 8}, 5, INSN_NOTHING, 0},
		{{0x67, 0xa1, 1, 2, 3, 4}, 6, INSN_NOTHING, 0}, /* an address of 4 bytes */
		{{0xa1, 1, 2, 3, 4, 5, 6, 7, 8}, 9, INSN_NOTHING, 0},
		{{0x67, 0x48, 0x8d, 0x64, 0x24, 8}, 6, INSN_WRITE_SP, 0}, /* esp + 8 */
		{{0x64, 0x48, 0x89, 0x6c, 0x24, 8}, 6, INSN_NOTHING, 0},  /* in a thread's memory */
		{{0x48, 0x89, 0x6c, 0x24, 8}, 5, INSN_SAVE_FP, 8},
		{{0x66, 0x55}, 2, INSN_WRITE_SP, 0}, /* push %bp */
		{{0x66, 0x68, 1, 2}, 4, INSN_WRITE_SP, 0},
	};

	CHECK_ALL(e);
}

TEST(parts_of_registers)
{
	static const struct expected e[] = {
		{{0x80, 0xcc, 8}, 3, INSN_NOTHING, 0}, /* or $8,%ah, not a part of rsp */
		{{0x40, 0x80, 0xcc, 8}, 4, INSN_WRITE_SP, 0},
		{{0x0f, 0x94, 0xc5}, 3, INSN_NOTHING, 0}, /* sete %ch */
		{{0x40, 0x0f, 0x94, 0xc5}, 4, INSN_WRITE_FP, 0},
		{{0xb5, 1}, 2, INSN_NOTHING, 0},
		{{0x40, 0xb5, 1}, 3, INSN_WRITE_FP, 0},
		{{0x41, 0xb5, 1}, 3, INSN_NOTHING, 0}, /* r13b */
		{{0x40, 0x88, 0xc5}, 3, INSN_WRITE_FP, 0},
		{{0x40, 0x8a, 0x28}, 3, INSN_WRITE_FP, 0},
		{{0x29, 0xc4}, 2, INSN_WRITE_SP, 0}, /* sub %eax,%esp */
		{{0x48, 0x29, 0xc4}, 3, INSN_LOSE_SP, 0},
	};

	CHECK_ALL(e);
}

TEST(writes_to_rbp)
{
	static const struct expected e[] = {
		{{0xf0, 0x0f, 0xc1, 0x28}, 4, INSN_WRITE_FP, 0}, /* lock xadd %ebp,(%rax) */
		{{0x87, 0x28}, 2, INSN_WRITE_FP, 0},
		{{0x48, 0x87, 0xec}, 3, INSN_WRITE_SP, 0}, /* xchg %rbp,%rsp */
		{{0x0f, 0xba, 0xf5, 1}, 4, INSN_WRITE_FP, 0},
		{{0x0f, 0xba, 0xe5, 1}, 4, INSN_NOTHING, 0}, /* bt only tests */
		{{0x0f, 0xb3, 0xc5}, 3, INSN_WRITE_FP, 0},
		{{0xf2, 0x48, 0x0f, 0x2c, 0xe8}, 5, INSN_WRITE_FP, 0}, /* cvttsd2si */
		{{0x0f, 0x2c, 0xe8}, 3, INSN_NOTHING, 0},              /* to mm5 */
		{{0x66, 0x48, 0x0f, 0x7e, 0xc5}, 5, INSN_WRITE_FP, 0}, /* movq %xmm0,%rbp */
		{{0xf3, 0x0f, 0x7e, 0xc5}, 4, INSN_NOTHING, 0},
		{{0x66, 0x0f, 0xd7, 0xe8}, 4, INSN_WRITE_FP, 0},       /* pmovmskb */
		{{0xf2, 0x0f, 0x38, 0xf1, 0xe8}, 5, INSN_WRITE_FP, 0}, /* crc32 */
		{{0x66, 0x0f, 0x3a, 0x16, 0xc5, 0}, 6, INSN_WRITE_FP, 0},
		{{0x0f, 0xc7, 0xf5}, 3, INSN_WRITE_FP, 0},                /* rdrand */
		{{0xc4, 0xe2, 0xf8, 0xf2, 0xe8}, 5, INSN_WRITE_FP, 0},    /* andn */
		{{0xc4, 0xe2, 0xd0, 0xf3, 0xc8}, 5, INSN_WRITE_FP, 0},    /* blsr %rax,%rbp */
		{{0xc4, 0xe3, 0xfb, 0xf0, 0xe8, 3}, 6, INSN_WRITE_FP, 0}, /* rorx */
		{{0xc5, 0xfd, 0xd7, 0xe8}, 4, INSN_WRITE_FP, 0},          /* vpmovmskb */
		{{0xc5, 0xfb, 0x93, 0xe8}, 4, INSN_WRITE_FP, 0},          /* kmovd %k0,%ebp */
		{{0xc5, 0xfb, 0x92, 0xe8}, 4, INSN_NOTHING, 0},           /* kmovd %eax,%k5 */
		{{0x62, 0xf1, 0xff, 0x08, 0x2d, 0xe8}, 6, INSN_WRITE_FP, 0},
	};

	CHECK_ALL(e);
}

TEST(lengths_of_rare_forms)
{
	static const struct expected e[] = {
		{{0x0f, 0x0f, 0xc1, 0xb4}, 4, INSN_NOTHING, 0}, /* 3DNow: pfmul */
		{{0x0f, 0x20, 0x04},
		 3,
		 INSN_WRITE_SP,
		 0}, /* mov %cr0,%rsp: no SIB, whatever mod is */
		{{0x0f, 0x78, 0xc1}, 3, INSN_NOTHING, 0},
		{{0x66, 0x0f, 0x78, 0xc1, 1, 2}, 6, INSN_NOTHING, 0},             /* extrq */
		{{0x8f, 0xe8, 0x78, 0x85, 0xc1, 0x10}, 6, INSN_NOTHING, 0},       /* XOP, map 8 */
		{{0x8f, 0xe9, 0x78, 0x01, 0xc9}, 5, INSN_NOTHING, 0},             /* map 9 */
		{{0x8f, 0xea, 0x78, 0x10, 0xc1, 1, 2, 3, 4}, 9, INSN_NOTHING, 0}, /* map 10 */
		{{0x8f, 0x00}, 2, INSN_POP, 0},
		{{0x8f, 0xc5}, 2, INSN_POP_FP, 0},
		{{0xff, 0xf5}, 2, INSN_PUSH_FP, 0},
		{{0xc4, 0xe2, 0x78, 0x49, 0xc0}, 5, INSN_NOTHING, 0},       /* AMX: tilerelease */
		{{0x62, 0xf5, 0x7c, 0x48, 0x58, 0xc1}, 6, INSN_NOTHING, 0}, /* AVX512-FP16 */
		{{0xf3, 0x0f, 0x1e, 0xfa}, 4, INSN_NOTHING, 0},             /* endbr64 */
		{{0xf3, 0x48, 0x0f, 0x1e, 0xcd}, 5, INSN_WRITE_FP, 0},      /* rdsspq %rbp */
		{{0xc7, 0xf8, 4, 0, 0, 0}, 6, INSN_BRANCH, 0},              /* xbegin */
		{{0xc6, 0xf8, 0xff}, 3, INSN_NOTHING, 0},                   /* xabort */
		{{0x48, 0x8d, 0x6c, 0x24, 0x70}, 5, INSN_SET_FP, 0x70},
	};

	CHECK_ALL(e);
}

TEST(returns)
{
	static const struct expected e[] = {
		{{0xc3}, 1, INSN_RETURN, 0},
		{{0xf3, 0xc3}, 2, INSN_RETURN, 0},
		{{0xc2, 8, 0}, 3, INSN_ODD_RETURN, 0}, /* ret $8 */
		{{0xcb}, 1, INSN_ODD_RETURN, 0},       /* lret */
		{{0xca, 8, 0}, 3, INSN_ODD_RETURN, 0},
		{{0x48, 0xcf}, 2, INSN_ODD_RETURN, 0}, /* iretq */
	};

	CHECK_ALL(e);
}

TEST(loads_of_rbp)
{
	static const struct expected e[] = {
		{{0x48, 0x8b, 0x6c, 0x24, 0x10}, 5, INSN_LOAD_FP, 0x10},
		{{0x8b, 0x6c, 0x24, 0x10}, 4, INSN_WRITE_FP, 0}, /* to ebp */
		{{0x64, 0x48, 0x8b, 0x6c, 0x24, 0x10}, 6, INSN_WRITE_FP, 0},
		{{0x48, 0x8b, 0x2c, 0x0c}, 4, INSN_WRITE_FP, 0}, /* (%rsp,%rcx) */
		{{0x48, 0x8b, 0x6d, 0xf8}, 4, INSN_WRITE_FP, 0},
	};

	CHECK_ALL(e);
}

/* What memory by rbp says of it. */
TEST(memory_by_rbp)
{
	static const struct {
		uint8_t bytes[8], len;
		int by_fp;
	} e[] = {
		{{0x48, 0x8b, 0x45, 0xf8}, 4, INSN_BELOW_FP},              /* mov -8(%rbp),%rax */
		{{0x89, 0x8d, 0, 0xff, 0xff, 0xff}, 6, INSN_BELOW_FP},     /* mov %ecx,-256(%rbp) */
		{{0x48, 0x8d, 0x45, 0xf8}, 4, INSN_BELOW_FP},              /* lea -8(%rbp),%rax */
		{{0xc5, 0xfa, 0x10, 0x45, 0xf0}, 5, INSN_BELOW_FP},        /* vmovss */
		{{0x48, 0x8b, 0x45, 0x00}, 4, INSN_AT_FP},                 /* mov (%rbp),%rax */
		{{0xff, 0x55, 0x08}, 3, INSN_AT_FP},                       /* call *8(%rbp) */
		{{0x48, 0x8b, 0x45, 0x10}, 4, INSN_NOT_BY_FP},             /* an argument */
		{{0x49, 0x8b, 0x45, 0xf8}, 4, INSN_NOT_BY_FP},             /* -8(%r13) */
		{{0x48, 0x8b, 0x44, 0x0d, 0xf8}, 5, INSN_NOT_BY_FP},       /* -8(%rbp,%rcx) */
		{{0x64, 0x48, 0x8b, 0x45, 0xf8}, 5, INSN_NOT_BY_FP},       /* %fs:-8(%rbp) */
		{{0x8b, 0x05, 0xf8, 0xff, 0xff, 0xff}, 6, INSN_NOT_BY_FP}, /* -8(%rip) */
		{{0x0f, 0x1f, 0x45, 0xf8}, 4, INSN_NOT_BY_FP},             /* nop */
		{{0x48, 0x89, 0xe5}, 3, INSN_NOT_BY_FP},
	};
	struct insn in;

	for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++) {
		CHECK_INT(fusee_insn_decode(e[i].bytes, e[i].len, &in), 0);
		CHECK_INT(in.len, e[i].len);
		CHECK_INT(in.by_fp, e[i].by_fp);
	}
}

/* AVX-512 in EVEX is read; what APX has given EVEX is not, nor its prefix and its registers. */
TEST(extended_registers)
{
	static const struct expected e[] = {
		{{0xc4, 0xe2, 0x71, 0xe6, 0x28},
		 5,
		 INSN_WRITE_FP,
		 0}, /* cmpbexadd %ecx,%ebp,(%rax) */
		{{0xc4, 0xe2, 0x71, 0xe6, 0x18}, 5, INSN_NOTHING, 0},
		{{0x62, 0xf1, 0xff, 0x08, 0x2d, 0xe8}, 6, INSN_WRITE_FP, 0},
		{{0x62, 0xe1, 0xff, 0x08, 0x2d, 0xe8}, 6, INSN_NOTHING, 0}, /* to r21 */
	};
	static const uint8_t apx[][12] = {
		{0x62, 0xf2, 0x74, 0x08, 0xf2, 0xe8},       /* andn */
		{0x62, 0xf2, 0x74, 0x08, 0xf3, 0xc8},       /* blsr */
		{0x62, 0xf2, 0x75, 0x08, 0xe6, 0x28},       /* cmpbexadd */
		{0x62, 0xf3, 0x7f, 0x08, 0xf0, 0xe8, 3},    /* rorx */
		{0x62, 0xf1, 0x7f, 0x08, 0x93, 0xe8},       /* kmovd */
		{0x62, 0xf2, 0x7f, 0x08, 0x4b, 0x04, 0},    /* tileloadd */
		{0x62, 0xf4, 0x7c, 0x18, 0x01, 0xe8},       /* add of three operands */
		{0x62, 0xf4, 0x7c, 0x18, 0xff, 0xf5},       /* push2 */
		{0x62, 0xf9, 0xff, 0x08, 0x2d, 0x28},       /* a base above r15 */
		{0x62, 0xf1, 0xfb, 0x08, 0x2d, 0x2c, 8},    /* an index above r15 */
		{0xd5, 0x18, 0x55},                         /* pushp %rbp */
		{0xd5, 0x00, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8}, /* jmpabs */
	};
	struct insn in;

	CHECK_ALL(e);
	for (size_t i = 0; i < sizeof(apx) / sizeof(apx[0]); i++)
		CHECK_INT(fusee_insn_decode(apx[i], sizeof(apx[i]), &in), -1);
}

TEST(targets)
{
	struct insn in;

	/* addr32 call, as linkers write it instead of a call through the GOT */
	CHECK_INT(fusee_insn_decode((const uint8_t[]){0x67, 0xe8, 16, 0, 0, 0}, 6, &in), 0);
	CHECK_INT(in.effect, INSN_CALL);
	CHECK_INT(in.has_target, 1);
	CHECK_INT(in.target, 22);
	CHECK_INT(fusee_insn_decode((const uint8_t[]){0x67, 0x8d, 0x05, 16, 0, 0, 0}, 7, &in), 0);
	CHECK_INT(in.address, 0); /* of 32 bits */
	CHECK_INT(fusee_insn_decode((const uint8_t[]){0x48, 0x8d, 0x05, 16, 0, 0, 0}, 7, &in), 0);
	CHECK_INT(in.address, 23);
}

TEST(what_is_refused)
{
	static const uint8_t codes[][8] = {
		{0x66, 0xe8, 1, 2, 3, 4},       /* 16 bits or 32, as the processor has it */
		{0x66, 0xc3},                   /* pops 2 bytes or 8 */
		{0x8d, 0xc0},                   /* lea of a register */
		{0x66, 0xc5, 0xf8, 0x77},       /* a prefix before VEX */
		{0x62, 0xf1, 0x78, 0x48, 0x58}, /* not EVEX: a bit is 0 */
		{0xc4, 0xe4, 0x78, 0x10, 0xc1}, /* a map that does not exist */
		{0xd5, 0x00, 0x01},             /* aad, in 32-bit programs alone */
	};
	struct insn in;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		CHECK_INT(fusee_insn_decode(codes[i], sizeof(codes[i]), &in), -1);
}

TEST(what_a_function_does_to_its_return_address_is_seen)
{
	static const struct {
		uint8_t code[8];
		int writes;
	} of[] = {
		{"\x48\x83\x04\x24\x04", 1},             /* addq $4,(%rsp) */
		{"\x48\x81\x04\x24\x00\x01\x00\x00", 1}, /* addq $256,(%rsp) */
		{"\x48\x83\x2c\x24\x04", 1},             /* subq $4,(%rsp) */
		{"\x48\xff\x04\x24", 1},                 /* incq (%rsp) */
		{"\x48\x89\x04\x24", 1},                 /* mov %rax,(%rsp) */
		{"\x48\xc7\x04\x24\x01", 1},             /* movq $..,(%rsp) */
		{"\x48\x83\x3c\x24\x04", 0},             /* cmpq $4,(%rsp) */
		{"\xff\x34\x24", 0},                     /* push (%rsp) */
		{"\x48\x8b\x04\x24", 0},                 /* mov (%rsp),%rax */
		{"\x48\x89\x44\x24\x08", 0},             /* mov %rax,8(%rsp) */
		{"\x48\x83\xc4\x08", 0},                 /* add $8,%rsp */
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		CHECK_INT(fusee_insn_writes_top(of[i].code, sizeof(of[i].code)), of[i].writes);
	CHECK(!fusee_insn_writes_top(of[0].code, 3));
	CHECK(!fusee_insn_writes_top(of[0].code, 0));
}
