/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/python
/* A file whose functions read what the table says, and files whose functions do not. */
#include "test.h"

#include "facts.h"
#include "tables.h"

#define FUNCTION 64u /* bytes */
#define RUNTIME 0x8000u

/* Of 3.12: mov D(%rdi),%rax; ret. */
static const struct accessor {
	const char *name, *code;
} accessors[] = {
	{"PyInterpreterState_Head", "\x48\x8b\x05\x00\x00\x00\x00\xc3"}, /* see below */
	{"PyInterpreterState_ThreadHead", "\x48\x8b\x47\x48\xc3"},
	{"PyInterpreterState_Next", "\x48\x8b\x07\xc3"},
	{"PyThreadState_Next", "\x48\x8b\x47\x08\xc3"},
	{"PyThreadState_SetAsyncExc", "\x48\x3b\xb8\x88\x00\x00\x00\xc3"},
	{"PyThreadState_GetFrame", "\x48\x8b\x47\x38\xc3"},
	{"PyFrame_GetBack", "\x48\x8b\x40\x08\xc3"},
	{"PyFrame_GetCode", "\x48\x8b\x00\xc3"},
	{"PyFrame_GetLasti", "\x48\x8b\x40\x38\xc3"},
	{"PyCode_Addr2Line", "\x8b\x47\x44\xe8"}, /* calls what follows */
	{"", "\x48\x8b\x87\x88\x00\x00\x00\xc3"},
	{"PyUnicode_AsUTF8AndSize", "\x48\x83\xc0\x28\xc3"},
};
#define ACCESSORS (sizeof(accessors) / sizeof(accessors[0]))

static unsigned char bytes[ACCESSORS * FUNCTION];
static size_t without; /* the number of what is missing */

static int symbol(uint64_t file, const char *name, struct fusee_range *r)
{
	(void)file;
	for (size_t i = 0; i < ACCESSORS; i++)
		if (!strcmp(accessors[i].name, name) && i != without) {
			*r = (struct fusee_range){(i + 1) * FUNCTION, (i + 2) * FUNCTION};
			return 0;
		}
	return -ENOENT;
}

static int function(uint64_t file, uint64_t at, struct fusee_range *r)
{
	(void)file;
	r->lo = at / FUNCTION * FUNCTION;
	r->hi = r->lo + FUNCTION;
	return r->lo && r->hi <= sizeof(bytes) + FUNCTION ? 0 : -ENOENT;
}

static int read_file(uint64_t file, uint64_t at, void *to, uint32_t n)
{
	(void)file;
	memcpy(to, bytes + at - FUNCTION, n);
	return 0;
}

static struct fusee_doubt check(void)
{
	static const struct fusee_unwinder_host host = {
		.file_symbol = symbol, .file_function = function, .file_read = read_file};
	uint32_t words[PYTHON_WORDS];

	CHECK_INT(python_version_words(0x030c03f0, words), 0);
	return python_check_facts(&host, 1, RUNTIME, words);
}

static void make(void)
{
	int32_t head = (int32_t)(RUNTIME + 40 - FUNCTION - 7), next = FUNCTION - 8;

	memset(bytes, 0x90, sizeof(bytes));
	without = ACCESSORS;
	for (size_t i = 0; i < ACCESSORS; i++)
		memcpy(bytes + i * FUNCTION, accessors[i].code, 8);
	memcpy(bytes + 3, &head, 4);
	memcpy(bytes + 9 * FUNCTION + 4, &next, 4);
}

TEST(functions_that_read_what_the_table_says)
{
	make();
	CHECK(!check().function);
}

/* Each function reads something else in turn, or is missing. */
TEST(functions_that_read_something_else)
{
	for (size_t i = 0; i < ACCESSORS; i++) {
		const char *name = accessors[i].name;

		make();
		bytes[i * FUNCTION + 2] ^= 0x40; /* another kind of operand */
		bytes[i * FUNCTION + 3] ^= 0x40;
		if (check().function)
			CHECK_STR(check().function, *name ? name : "PyCode_Addr2Line");
		else
			test_fail(__FILE__, __LINE__, "%s is not missed", name);
		CHECK(!check().missing);
		make();
		without = i;
		if (*name) {
			CHECK_STR(check().function, name);
			CHECK(check().missing);
		}
	}
}
