/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind bpf/called.h
#include "test.h"

#include "unwind/internal/walk_called.h"

#define RETURN 0x401000u /* where the call ends */
#define STACK 0x7f0008u
#define RAX 0x10000u
#define RCX 0x20000u
#define RDX 0x30000u
#define RBX 0x40000u
#define RBP 0x50000u
#define RSI 0x60000u
#define RDI 0x70000u
#define R(n) (0x100000u * (n)) /* 8 to 15 */

/* Memory: the stack's word, the call, and one more word. */
struct memory {
	uint64_t word;
	unsigned char code[16];
	struct {
		uint64_t at, value;
	} slot;
	struct {
		uint64_t at;
		const void *bytes;
	} entry; /* of a PLT */
	uint32_t fails, reads;
};

static struct memory *memory; /* of the test at hand */

static int copy(void *dst, uint32_t len, uint64_t addr, uint64_t at, const void *of, uint32_t size)
{
	if (addr < at || addr + len > at + size)
		return -1;
	memcpy(dst, (const char *)of + (addr - at), len);
	return 0;
}

static int read_memory(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct memory *m = memory;

	(void)n;
	if (++m->reads == m->fails)
		return -1;
	return copy(dst, len, addr, STACK, &m->word, 8) &&
	       copy(dst, len, addr, RETURN - 16, m->code, 16) &&
	       copy(dst, len, addr, m->slot.at, &m->slot.value, m->slot.at ? 8 : 0) &&
	       copy(dst, len, addr, m->entry.at, m->entry.bytes, m->entry.at ? 16 : 0);
}

/* The process's memory at pc. */
static int read_at(void *arg, void *dst, uint32_t len, uint64_t addr)
{
	(void)arg;
	memset(dst, 0, len);
	return addr == 0x666000 ? 0 : -1;
}

struct called {
	struct memory memory;
	struct sample_memory process;
	struct walk_context context;
	struct fusee_native native;
};

static void set_registers(struct fusee_unwind *u)
{
	static const uint64_t value[16] = {RAX, RDX, RCX, RBX, RSI, RDI};

	for (uint64_t i = 0; i < 16; i++)
		u->regs[i] = i < 8 ? value[i] : R(i);
	u->fp = RBP;
	u->valid_regs = 0xff3f;
}

/* A thread is at pc, and the word at its sp is right behind this code. */
static void begin(struct called *c, const void *code, uint32_t len, uint64_t pc)
{
	*c = (struct called){.memory = {.word = RETURN}, .process = {.read = read_at}};
	c->context.memory = &c->process;
	memory = &c->memory;
	memset(c->memory.code, 0x90, 16);
	memcpy(c->memory.code + 16 - len, code, len);
	c->native = (struct fusee_native){.read = read_memory, .arg = &c->context};
	c->native.u = (struct fusee_unwind){.pc = pc, .sp = STACK, .flags = FUSEE_PC_EXACT};
	set_registers(&c->native.u);
}

static bool goes_to_caller(struct called *c)
{
	const struct fusee_unwind before = c->native.u;
	bool called = walk_called(&c->native);

	CHECK_INT(c->native.u.pc, called ? RETURN : before.pc);
	CHECK_INT(c->native.u.sp, called ? STACK + 8 : STACK);
	CHECK_INT(c->native.u.flags & FUSEE_PC_EXACT, called ? 0 : FUSEE_PC_EXACT);
	CHECK_INT(c->native.u.valid_regs, called ? 0 : before.valid_regs);
	return called;
}

/* As the assembler writes them, and where each finds the address that it calls. */
static const struct {
	uint32_t len;
	unsigned char code[8];
	uint64_t slot;
} calls[] = {
	{2, "\xff\x17", RDI},                                            /* *(%rdi) */
	{4, "\x41\xff\x55", R(13)},                                      /* *(%r13) */
	{3, "\xff\x14\x24", STACK + 8},                                  /* *(%rsp) */
	{3, "\xff\x50\x10", RAX + 16},                                   /* *16(%rax) */
	{3, "\xff\x55\xf8", RBP - 8},                                    /* *-8(%rbp) */
	{4, "\xff\x54\x24\x18", STACK + 8 + 24},                         /* *24(%rsp) */
	{5, "\x41\xff\x54\x24\x18", R(12) + 24},                         /* *24(%r12) */
	{6, "\xff\x93\x00\x10\x00\x00", RBX + 0x1000},                   /* *0x1000(%rbx) */
	{7, "\x41\xff\x97\x00\xf0\xff\xff", R(15) - 0x1000},             /* *-0x1000(%r15) */
	{6, "\xff\x15\x00\x01\x00\x00", RETURN + 0x100},                 /* *0x100(%rip) */
	{3, "\xff\x14\xf7", RDI + 8 * RSI},                              /* *(%rdi,%rsi,8) */
	{5, "\x42\xff\x54\x8f\x08", RDI + 4 * R(9) + 8},                 /* *8(%rdi,%r9,4) */
	{8, "\x43\xff\x94\x50\x00\xff\xff\xff", R(8) + 2 * R(10) - 256}, /* *-256(%r8,%r10,2) */
	{7, "\xff\x14\xd5\x00\x50\x00\x00", 0x5000 + 8 * RDX},           /* *0x5000(,%rdx,8) */
	{7, "\xff\x14\x25\x00\x50\x00\x00", 0x5000},                     /* *0x5000 */
};

TEST(the_callee_of_each_call_by_memory_is_found)
{
	struct called c;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		begin(&c, calls[i].code, calls[i].len, 0);
		c.memory.slot.at = calls[i].slot;
		CHECK(goes_to_caller(&c));
		/* it has called another function, or it is not known what */
		begin(&c, calls[i].code, calls[i].len, 0);
		c.memory.slot.at = calls[i].slot;
		c.memory.slot.value = 8;
		CHECK(!goes_to_caller(&c));
		begin(&c, calls[i].code, calls[i].len, 0);
		c.memory.slot.at = calls[i].slot + 8;
		CHECK(!goes_to_caller(&c));
	}
}

TEST(a_call_by_a_register_has_called_its_value)
{
	struct called c;

	begin(&c, "\xff\xd0", 2, 0);
	CHECK(!goes_to_caller(&c));
	c.native.u.regs[FUSEE_X86_RAX] = 0;
	CHECK(goes_to_caller(&c));
	begin(&c, "\x41\xff\xd3", 3, 0);
	c.native.u.regs[FUSEE_X86_RBX] = 0; /* what it is without its prefix */
	CHECK(goes_to_caller(&c));
	begin(&c, "\x41\xff\xd3", 3, 0);
	c.native.u.regs[FUSEE_X86_R11] = 0;
	c.native.u.valid_regs &= ~(1u << FUSEE_X86_R11);
	CHECK(!goes_to_caller(&c));
	c.native.u.valid_regs |= 1u << FUSEE_X86_R11;
	CHECK(goes_to_caller(&c));
}

/* call, to an entry that jumps by a word. */
TEST(an_entry_of_a_PLT_is_looked_through)
{
	static const unsigned char plain[16] = "\xff\x25\x00\x02\x00\x00";
	static const unsigned char marked[16] = "\xf3\x0f\x1e\xfa\xf2\xff\x25\xfb\x01\x00\x00";
	static const unsigned char other[16] = "\xff\x15\x00\x02\x00\x00";
	static const void *const entries[] = {plain, marked, other};
	struct called c;

	for (size_t i = 0; i < 3; i++) {
		begin(&c, "\xe8\x00\x10\x00\x00", 5, 0);
		c.memory.entry.at = RETURN + 0x1000;
		c.memory.entry.bytes = entries[i];
		c.memory.slot.at = RETURN + 0x1206;
		CHECK_INT(goes_to_caller(&c), i < 2);
	}
}

TEST(nothing_else_is_a_call)
{
	struct called c;

	begin(&c, "\xff\xe0", 2, 0); /* a jump */
	c.native.u.regs[FUSEE_X86_RAX] = 0;
	CHECK(!goes_to_caller(&c));
	begin(&c, "\xff\xd0", 2, 0);
	c.native.u.regs[FUSEE_X86_RAX] = 0;
	c.native.u.flags = 0; /* a return address of 0 */
	CHECK(!walk_called(&c.native));
	begin(&c, "\xff\xd0", 2, 0);
	c.native.u.regs[FUSEE_X86_RAX] = 0;
	c.memory.word = RETURN + 1;
	CHECK(!goes_to_caller(&c));
	begin(&c, "\xff\xd0", 2, 0);
	c.native.u.regs[FUSEE_X86_RAX] = 0;
	c.native.u.sp -= 8; /* as behind a return */
	CHECK(!walk_called(&c.native));
}

/* Code may be there that no record of a mapping has been read about yet. */
TEST(an_address_has_no_code_for_certain)
{
	static const struct {
		uint64_t pc;
		bool first, stopped, called;
	} cases[] = {
		{0, true, false, true},          {4095, false, false, true},
		{0x555000, false, true, true},   {0x555000, true, true, false},
		{0x555000, false, false, false}, {0x666000, false, true, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct called c;

		begin(&c, "\xff\xd0", 2, cases[i].pc);
		c.native.u.regs[FUSEE_X86_RAX] = cases[i].pc;
		c.native.u.flags |= cases[i].first ? FUSEE_FIRST : 0;
		if (!cases[i].stopped)
			c.context.memory = NULL;
		CHECK_INT(walk_called(&c.native), cases[i].called);
	}
}

TEST(a_read_that_fails_proves_nothing)
{
	struct called c;

	for (uint32_t fails = 1; fails <= 3; fails++) {
		begin(&c, "\xff\x50\x10", 3, 0);
		c.memory.slot.at = RAX + 16;
		c.memory.fails = fails;
		CHECK(!goes_to_caller(&c));
		CHECK_INT(c.memory.reads, fails);
	}
}
