/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/process
#include "test.h"

#include <elf.h>

#include "process/call.h"

/* Functions that end at once, and calls of each, whose return addresses are `behind_`. */
extern char __ehdr_start[], plain[], jumps[], switches[], behind_plain[], behind_jumps[],
	behind_switches[], behind_plt[], behind_register[];
__asm__(".text\n"
	".p2align 4\n"
	"plain: .cfi_startproc\n nop\n ret\n .cfi_endproc\n"
	"jumps: .cfi_startproc\n nop\n .byte 0xe9\n .long plain - . - 4\n .cfi_endproc\n"
	"switches: .cfi_startproc\n nop\n jmp *%rax\n .cfi_endproc\n"
	"caller: .cfi_startproc\n"
	" call plain\n behind_plain: nop\n call jumps\n behind_jumps: nop\n"
	" call switches\n behind_switches: nop\n call getpid@PLT\n behind_plt: nop\n"
	" nop; nop; nop\n call *%rax\n behind_register: ret\n .cfi_endproc\n");

/* What the calls are read from; fails: not at all. */
struct fusee_native {
	bool fails;
};

static int copy(struct fusee_native *n, void *dst, unsigned int len, unsigned long long addr)
{
	if (n->fails)
		return -1;
	memcpy(dst, (const void *)(uintptr_t)addr, len);
	return 0;
}

static struct call_file self(struct fusee_native *n, const char *path)
{
	return (struct call_file){.fd = open(path, O_RDONLY | O_CLOEXEC),
				  .file = 1,
				  .bias = (uint64_t)(uintptr_t)__ehdr_start,
				  .read = copy,
				  .arg = n};
}

static bool may(struct call_answers **a, const struct call_file *c, const char *ret,
		const char *callee)
{
	bool searched;

	return call_may_lead(a, c, (uint64_t)(uintptr_t)ret, (uint64_t)(uintptr_t)callee,
			     &searched);
}

TEST(a_call_leads_to_the_function_that_it_names_or_that_this_jumps_to)
{
	struct fusee_native n = {0};
	struct call_file c = self(&n, "/proc/self/exe");
	struct call_answers *a = NULL;

	for (int again = 0; again < 2; again++) {
		CHECK(may(&a, &c, behind_plain, plain + 1));
		CHECK(!may(&a, &c, behind_plain, jumps + 1));
		CHECK(!may(&a, &c, behind_plain, switches));
		CHECK(may(&a, &c, behind_jumps, jumps + 1));
		CHECK(may(&a, &c, behind_jumps, plain + 1));
		CHECK(!may(&a, &c, behind_jumps, switches));
		CHECK(!may(&a, &c, behind_switches, plain));
		/* of what these call nothing is known */
		CHECK(may(&a, &c, behind_plt, plain));
		CHECK(may(&a, &c, behind_register, plain));
	}
	close(c.fd);
	free(a);
}

TEST(a_function_that_jumps_nowhere_does_not_run_code_of_no_file)
{
	struct fusee_native n = {0};
	struct call_file c = self(&n, "/proc/self/exe");
	struct call_answers *a = NULL;

	CHECK(!may(&a, &c, behind_plain, NULL));
	CHECK(may(&a, &c, behind_jumps, NULL));
	CHECK(may(&a, &c, behind_switches, NULL));
	CHECK(may(&a, &c, behind_plt, NULL));
	CHECK(may(&a, &c, behind_register, NULL));
	close(c.fd);
	free(a);
}

TEST(what_cannot_be_read_is_not_known)
{
	struct fusee_native n = {.fails = true};
	struct call_file c = self(&n, "/proc/self/exe"), none;
	struct call_answers *a = NULL;

	CHECK(may(&a, &c, behind_plain, switches));
	close(c.fd);
	free(a);
	a = NULL;
	n.fails = false;
	none = self(&n, "/dev/null");
	CHECK(may(&a, &none, behind_plain, switches));
	close(none.fd);
	free(a);
}

/* A file's table says what it likes. */
TEST(a_damaged_index_is_no_index)
{
	static const unsigned char head[4][12] = {
		{1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		{1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 2, 0, 0, 0},
		{2, 0x1b, 3, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0},
		{1, 0x1b, 3, 0x3b},
	};
	Elf64_Ehdr e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phoff = sizeof(e),
			.e_phnum = 1};
	Elf64_Phdr p = {.p_type = PT_GNU_EH_FRAME, .p_offset = 512, .p_filesz = 28};

	for (size_t i = 0; i < 4; i++) {
		struct fusee_native n = {0};
		struct call_file c = self(&n, "/proc/self/exe");
		struct call_answers *a = NULL;

		close(c.fd);
		c.fd = memfd_create("index", MFD_CLOEXEC);
		CHECK_INT(pwrite(c.fd, &e, sizeof(e), 0), sizeof(e));
		CHECK_INT(pwrite(c.fd, &p, sizeof(p), sizeof(e)), sizeof(p));
		CHECK_INT(pwrite(c.fd, head[i], 12, 512), 12);
		CHECK(may(&a, &c, behind_plain, switches));
		close(c.fd);
		free(a);
	}
}
