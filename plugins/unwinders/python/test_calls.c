/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/python
/* An interpreter whose instructions are functions, in a file that is made up: its calls are found.
 */
#include "test.h"

#include <elf.h>

#include "calls.h"
#include "versions.h"

#define FILE_BYTES 0x20000u
#define EVAL 0x11000u
#define INLINED 0x12000u  /* a function that _PyEval_EvalFrameDefault is inlined into */
#define ERROR 0x13000u    /* a function that is called as an instruction's is */
#define HANDLERS 0x14000u /* 16 bytes each */
#define TABLE 0x18000u
#define FUNCTION 0x800u /* bytes of the other functions */

static unsigned char bytes[FILE_BYTES];
static int moved; /* the table has relocations, and zeros */

static int info(uint64_t file, struct fusee_file_info *i)
{
	static const struct fusee_segment segments[] = {
		{.flags = 5, .vaddr = 0x10000, .filesz = 0x8000},
		{.flags = 4, .vaddr = 0x18000, .filesz = 0x8000},
	};

	(void)file;
	i->segments = (struct fusee_table)FUSEE_TABLE(segments);
	return 0;
}

static int section(uint64_t file, const char *name, struct fusee_section *s)
{
	static Elf64_Rela r[256];

	(void)file;
	if (!moved || strcmp(name, ".rela.dyn") != 0)
		return -ENOENT;
	for (uint32_t i = 0; i < 256; i++)
		r[i] = (Elf64_Rela){TABLE + 8 * i, R_X86_64_RELATIVE, HANDLERS + 16 * i};
	s->bytes = (struct fusee_str){(const char *)r, sizeof(r)};
	return 0;
}

static int read_file(uint64_t file, uint64_t at, void *to, uint32_t n)
{
	(void)file;
	if (at >= FILE_BYTES || n > FILE_BYTES - at)
		return -EFAULT;
	memcpy(to, bytes + at, n);
	return 0;
}

static int function(uint64_t file, uint64_t at, struct fusee_range *r)
{
	uint64_t size = at >= HANDLERS ? 16 : FUNCTION;

	(void)file;
	if (at < EVAL || at >= TABLE)
		return -ENOENT;
	*r = (struct fusee_range){at / size * size, at / size * size + size};
	return 0;
}

static const struct fusee_unwinder_host host = {
	.file_info = info,
	.file_section = section,
	.file_read = read_file,
	.file_function = function,
};

static void put(uint32_t at, const char *code, uint32_t n)
{
	memcpy(bytes + at, code, n);
}

static void call(uint32_t at, uint32_t to)
{
	int32_t distance = (int32_t)(to - at - 5);

	bytes[at] = 0xe8;
	memcpy(bytes + at + 1, &distance, 4);
}

/* mov 72(%r14),%rax; mov %rax,-0x88(%rbp); lea -0x90(%rbp),%rax: the end of the frames */
static void entry(uint32_t at)
{
	put(at, "\x49\x8b\x46\x48\x48\x89\x85\x78\xff\xff\xff\x48\x8d\x85\x70\xff\xff\xff", 18);
}

/* Python in a program that is not moved when it is loaded; or in a file that is. */
static void make(int is_moved)
{
	uint64_t handler = HANDLERS;
	int32_t table = (int32_t)(TABLE - EVAL - 0x40 - 7);

	memset(bytes, 0x90, sizeof(bytes));
	moved = is_moved;
	for (uint32_t i = 0; i < 256; i++, handler += 16) {
		uint64_t word = moved ? 0 : handler;

		memcpy(bytes + TABLE + 8 * i, &word, 8);
	}
	entry(EVAL + 0x10);
	if (moved) { /* lea TABLE(%rip),%rcx; call *(%rcx,%rax,8) */
		put(EVAL + 0x40, "\x48\x8d\x0d", 3);
		memcpy(bytes + EVAL + 0x43, &table, 4);
		put(EVAL + 0x60, "\xff\x14\xc1\xeb\x1b", 5);
	} else { /* call *TABLE(,%rax,8); jmp */
		put(EVAL + 0x60, "\xff\x14\xc5\x00\x80\x01\x00\xeb\x17", 9);
	}
	put(EVAL + 0x80, "\x48\x83\xc4\x68\x5b\x5d\xc3", 7); /* add $0x68,%rsp; ..; ret */
	call(EVAL + 0x7b, ERROR);
	call(EVAL + 0x90, EVAL + FUNCTION); /* what follows is not the end */
	entry(INLINED + 0x10);
	call(INLINED + 0x50, HANDLERS + 16 * 7); /* of a frequent instruction */
	call(INLINED + 0x60, ERROR);
	call(INLINED + 0x70, ERROR + 1);
}

static struct python_calls find(void)
{
	struct fusee_code eval = {bytes + EVAL, FUNCTION, EVAL};
	uint32_t words[PYTHON_WORDS] = {0};
	struct python_calls found;

	words[PYTHON_FAMILY] = PYTHON_CHAIN;
	words[PYTHON_CURRENT] = 72;
	CHECK_INT(python_find_calls(&host, 1, &eval, words, &found), 0);
	return found;
}

TEST(calls_of_functions_of_instructions)
{
	for (int m = 0; m < 2; m++) {
		static const uint32_t at[] = {EVAL + 0x60, EVAL + 0x7b, INLINED + 0x50,
					      INLINED + 0x60};
		struct python_calls f;

		make(m);
		f = find();
		CHECK_INT(f.table, TABLE);
		CHECK_INT(f.n, 4);
		for (uint32_t i = 0; i < 4 && i < f.n; i++) {
			CHECK_INT(f.call[i].at.lo, at[i]);
			CHECK_INT(f.call[i].at.hi, at[i] + (i ? 5 : m ? 3 : 7));
			CHECK_INT(f.call[i].place, 0x90 | PYTHON_BELOW_FP);
		}
	}
}

/* A table that has something else than functions is none. */
TEST(another_table)
{
	uint64_t other = HANDLERS + 8;

	make(0);
	memcpy(bytes + TABLE + 8 * 200, &other, 8);
	CHECK_INT(find().table, 0);
	CHECK_INT(find().n, 0);
}
