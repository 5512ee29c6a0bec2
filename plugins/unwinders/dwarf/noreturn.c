/* SPDX-License-Identifier: Apache-2.0 */
#include "noreturn.h"

#include <string.h>
#include <fusee/helpers.h>

#include "cursor.h"

enum { R_X86_64_GLOB_DAT = 6, R_X86_64_JUMP_SLOT = 7, SYMBOL = 24, RELA = 24 };
#define MAX_NAME 256

static const char *const noreturn[] = {
	/* C and POSIX */
	"abort", "exit", "_exit", "_Exit", "quick_exit", "longjmp", "_longjmp", "siglongjmp",
	"pthread_exit",
	/* of C libraries, called by what compilers and headers write */
	"__assert", "__assert_fail", "__assert_perror_fail", "__chk_fail", "__fortify_fail",
	"__longjmp_chk", "__stack_chk_fail",
	/* of the C++ ABI */
	"_Unwind_Resume", "__cxa_bad_cast", "__cxa_bad_typeid", "__cxa_call_terminate",
	"__cxa_call_unexpected", "__cxa_deleted_virtual", "__cxa_pure_virtual", "__cxa_rethrow",
	"__cxa_throw", "__cxa_throw_bad_array_length", "__cxa_throw_bad_array_new_length",
	"_ZSt10unexpectedv", "_ZSt9terminatev",
	"_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE"};

/* Is it std::__throw_length_error(char const *) or alike: _ZSt, a length, __throw_? */
static int throws(const char *name)
{
	if (strncmp(name, "_ZSt", 4))
		return 0;
	name += 4;
	name += strspn(name, "0123456789");
	return !strncmp(name, "__throw_", 8);
}

int code_noreturn_named(const struct fusee_str *names, uint64_t at)
{
	char name[MAX_NAME] = "";
	uint64_t max = at < names->len ? names->len - at : 0;

	/* of a longer name the beginning is enough */
	memcpy(name, max ? names->p + at : "", max < sizeof(name) - 1 ? max : sizeof(name) - 1);
	for (size_t i = 0; i < sizeof(noreturn) / sizeof(noreturn[0]); i++)
		if (!strcmp(name, noreturn[i]))
			return 1;
	return throws(name);
}

/* The words of the GOT where the dynamic linker puts the address of such a function. */
static int add_slots(const struct fusee_unwinder_host *host, uint64_t file, const char *relocations,
		     struct code_entries *slots)
{
	struct fusee_section rela, symbols, names;
	int err = 0;

	if (fusee_file_section(host, file, relocations, &rela) ||
	    fusee_file_section(host, file, ".dynsym", &symbols) ||
	    fusee_file_section(host, file, ".dynstr", &names))
		return 0;
	for (uint64_t at = 0; !err && rela.bytes.len - at >= RELA; at += RELA) {
		uint64_t info = load_u64(rela.bytes.p + at + 8), symbol = (info >> 32) * SYMBOL;
		uint32_t type = (uint32_t)info, name;

		if ((type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT) ||
		    symbol > symbols.bytes.len || symbols.bytes.len - symbol < SYMBOL)
			continue;
		memcpy(&name, symbols.bytes.p + symbol, sizeof(name));
		if (code_noreturn_named(&names.bytes, name))
			err = code_entries_add(slots, load_u64(rela.bytes.p + at));
	}
	return err;
}

/* Stubs are [endbr64;] [bnd] jmp *slot(%rip). */
static int add_stubs(const struct fusee_section *plt, const struct code_entries *slots,
		     struct code_entries *e)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *p = (const uint8_t *)plt->bytes.p;
	int err = 0;

	for (uint64_t at = 0; !err && plt->bytes.len - at >= 6; at++) {
		uint64_t stub = at;
		int32_t to;

		if (p[at] != 0xff || p[at + 1] != 0x25)
			continue;
		memcpy(&to, p + at + 2, sizeof(to));
		if (!code_entries_has(slots, plt->vaddr + at + 6 + (uint64_t)(int64_t)to))
			continue;
		if (stub && p[stub - 1] == 0xf2)
			stub--;
		if (stub >= sizeof(endbr64) &&
		    !memcmp(p + stub - sizeof(endbr64), endbr64, sizeof(endbr64)))
			stub -= sizeof(endbr64);
		err = code_entries_add(e, plt->vaddr + stub);
	}
	return err;
}

int code_noreturn_stubs(const struct fusee_unwinder_host *host, uint64_t file,
			struct code_entries *e)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got"};
	struct code_entries slots = {0};
	struct fusee_section plt;
	int err = add_slots(host, file, ".rela.plt", &slots);

	if (!err)
		err = add_slots(host, file, ".rela.dyn", &slots);
	code_entries_sort(&slots);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!err && slots.n && !fusee_file_section(host, file, names[i], &plt))
			err = add_stubs(&plt, &slots, e);
	for (size_t i = 0; i < slots.n && !err; i++)
		err = code_entries_add(e, slots.p[i]);
	code_entries_fini(&slots);
	return err;
}
