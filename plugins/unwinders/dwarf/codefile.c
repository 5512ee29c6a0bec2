/* SPDX-License-Identifier: Apache-2.0 */
#include "codefile.h"

#include <string.h>

#include "code.h"
#include "code_noreturn.h"
#include "cursor.h"
#include "insn.h"

#define R_X86_64_RELATIVE 8
#define ENTRY_BYTES 64
enum { STT_FUNC = 2, STT_IFUNC = 10, SYMBOL = 24, RELA = 24 };

/* Is it `foo.cold`, `foo.cold.3` or `foo.__part.2`: code that a compiler has moved out of foo? Such
 * a part begins with what foo has pushed. */
static int is_part(const struct fusee_str *names, uint64_t at)
{
	static const char *const parts[] = {".cold", ".__part."};
	uint64_t len = at < names->len ? strnlen(names->p + at, names->len - at) : 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t n = strlen(parts[i]);
		const char *p = len ? memmem(names->p + at, len, parts[i], n) : NULL;
		uint64_t end = p ? (uint64_t)(p - names->p) + n : 0;

		if (p && (parts[i][n - 1] == '.' || end == at + len || names->p[end] == '.'))
			return 1;
	}
	return 0;
}

/* Where symbols say that functions and parts of them begin. */
static int add_symbols(const struct fusee_unwinder_host *host, uint64_t file, const char *name,
		       const char *of_names, struct code_entries *sure, struct code *code)
{
	struct fusee_section s, names;
	int err = 0;

	if (fusee_file_section(host, file, name, &s))
		return 0;
	fusee_file_section(host, file, of_names, &names); /* without names none is a part */
	for (uint64_t at = 0; !err && s.bytes.len - at >= SYMBOL; at += SYMBOL) {
		unsigned int type = (unsigned char)s.bytes.p[at + 4] & 15;
		uint64_t value = load_u64(s.bytes.p + at + 8);
		uint32_t text;

		if (!value || (type != STT_FUNC && type != STT_IFUNC))
			continue;
		memcpy(&text, s.bytes.p + at, sizeof(text));
		err = code_entries_add(is_part(&names.bytes, text) ? &code->parts : sure, value);
		if (!err && code_noreturn_named(&names.bytes, text))
			err = code_entries_add(&code->noreturn, value);
	}
	return err;
}

/* Words of writable data that may be pointers to functions, as they are or by relocation. */
static int add_pointers(const struct fusee_unwinder_host *host, uint64_t file, uint64_t lo,
			uint64_t hi, struct code_entries *e)
{
	static const char *const names[] = {".init_array", ".fini_array", ".data.rel.ro", ".data"};
	struct fusee_section s;
	int err = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (fusee_file_section(host, file, names[i], &s))
			continue;
		for (uint64_t at = 0; !err && s.bytes.len - at >= 8; at += 8)
			if (load_u64(s.bytes.p + at) >= lo && load_u64(s.bytes.p + at) < hi)
				err = code_entries_add(e, load_u64(s.bytes.p + at));
	}
	if (fusee_file_section(host, file, ".rela.dyn", &s))
		return err;
	for (uint64_t at = 0; !err && s.bytes.len - at >= RELA; at += RELA)
		if (load_u64(s.bytes.p + at + 8) == R_X86_64_RELATIVE &&
		    load_u64(s.bytes.p + at + 16) >= lo && load_u64(s.bytes.p + at + 16) < hi)
			err = code_entries_add(e, load_u64(s.bytes.p + at + 16));
	return err;
}

int codefile_add(struct table_build *build, const struct fusee_unwinder_host *host, uint64_t file,
		 uint64_t entry, const struct rows *known, struct rows *ret)
{
	struct code_entries sure = {0}, maybe = {0};
	struct fusee_section text, data;
	struct code code;
	int err;

	if (fusee_file_section(host, file, ".text", &text) || text.bytes.len > CODEFILE_MAX_BYTES ||
	    !table_in_text(build, text.vaddr, text.vaddr + text.bytes.len))
		return 0;
	code = (struct code){.bytes = (const uint8_t *)text.bytes.p,
			     .len = text.bytes.len,
			     .vaddr = text.vaddr,
			     .known = known};
	if (!fusee_file_section(host, file, ".rodata", &data))
		code.data = (struct code_bytes){(const uint8_t *)data.bytes.p, data.bytes.len,
						data.vaddr};
	err = code_entries_add(&sure, entry);
	if (!err)
		err = add_symbols(host, file, ".symtab", ".strtab", &sure, &code);
	if (!err)
		err = add_symbols(host, file, ".dynsym", ".dynstr", &sure, &code);
	if (!err)
		err = code_noreturn_stubs(host, file, &code.noreturn);
	code_entries_sort(&code.noreturn);
	if (!err)
		err = add_pointers(host, file, code.vaddr, code.vaddr + code.len, &maybe);
	if (!err)
		err = code_read(build, &code, &sure, &maybe, ret);
	code_entries_fini(&sure);
	code_entries_fini(&maybe);
	code_entries_fini(&code.parts);
	code_entries_fini(&code.noreturn);
	return err;
}

uint64_t codefile_entry_end(const struct fusee_unwinder_host *host, uint64_t file, uint64_t entry)
{
	uint8_t code[ENTRY_BYTES];
	struct insn in;
	size_t at = 0, n = sizeof(code);

	while (n && host->file_read(file, entry, code, (uint32_t)n))
		n /= 2;
	while (at < n && !insn_decode(code + at, n - at, &in)) {
		if (in.nop && at) /* padding behind a call that does not return */
			break;
		at += in.len;
		if (in.effect == INSN_HALT || in.effect == INSN_JUMP || in.effect == INSN_RETURN ||
		    in.effect == INSN_ODD_RETURN)
			break;
	}
	return entry + (at ? at : ENTRY_BYTES);
}
