/* SPDX-License-Identifier: Apache-2.0 */
#include "codefile.h"

#include <string.h>

#include "code.h"
#include "insn.h"

#define R_X86_64_RELATIVE 8
#define ENTRY_BYTES 64
enum { STT_FUNC = 2, STT_IFUNC = 10, SYMBOL = 24, RELA = 24 };

static uint64_t u64_at(const struct fusee_section *s, uint64_t at)
{
	uint64_t v;

	memcpy(&v, s->bytes.p + at, sizeof(v));
	return v;
}

/* Where symbols say that functions begin. */
static int add_symbols(const struct fusee_unwinder_host *host, uint64_t file, const char *name,
		       struct dwt_entries *e)
{
	struct fusee_section s;
	int err = 0;

	if (fusee_file_section(host, file, name, &s))
		return 0;
	for (uint64_t at = 0; !err && s.bytes.len - at >= SYMBOL; at += SYMBOL) {
		unsigned int type = (unsigned char)s.bytes.p[at + 4] & 15;
		uint64_t value = u64_at(&s, at + 8);

		if (value && (type == STT_FUNC || type == STT_IFUNC))
			err = dwt_entries_add(e, value);
	}
	return err;
}

/* Words of writable data that may be pointers to functions, as they are or by relocation. */
static int add_pointers(const struct fusee_unwinder_host *host, uint64_t file, uint64_t lo,
			uint64_t hi, struct dwt_entries *e)
{
	static const char *const names[] = {".init_array", ".fini_array", ".data.rel.ro", ".data"};
	struct fusee_section s;
	int err = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (fusee_file_section(host, file, names[i], &s))
			continue;
		for (uint64_t at = 0; !err && s.bytes.len - at >= 8; at += 8)
			if (u64_at(&s, at) >= lo && u64_at(&s, at) < hi)
				err = dwt_entries_add(e, u64_at(&s, at));
	}
	if (fusee_file_section(host, file, ".rela.dyn", &s))
		return err;
	for (uint64_t at = 0; !err && s.bytes.len - at >= RELA; at += RELA)
		if (u64_at(&s, at + 8) == R_X86_64_RELATIVE && u64_at(&s, at + 16) >= lo &&
		    u64_at(&s, at + 16) < hi)
			err = dwt_entries_add(e, u64_at(&s, at + 16));
	return err;
}

int dwt_code_add(struct dwt *dwt, const struct fusee_unwinder_host *host, uint64_t file,
		 uint64_t entry, const struct dwt_rows *known, struct dwt_rows *ret)
{
	struct dwt_entries sure = {0}, maybe = {0};
	struct fusee_section text;
	struct dwt_code code;
	int err;

	if (fusee_file_section(host, file, ".text", &text) || text.bytes.len > DWT_MAX_CODE ||
	    !dwt_in_text(dwt, text.vaddr, text.vaddr + text.bytes.len))
		return 0;
	code = (struct dwt_code){.bytes = (const uint8_t *)text.bytes.p,
				 .len = text.bytes.len,
				 .vaddr = text.vaddr,
				 .known = known};
	err = dwt_entries_add(&sure, entry);
	if (!err)
		err = add_symbols(host, file, ".symtab", &sure);
	if (!err)
		err = add_symbols(host, file, ".dynsym", &sure);
	if (!err)
		err = add_pointers(host, file, code.vaddr, code.vaddr + code.len, &maybe);
	if (!err)
		err = dwt_code_read(dwt, &code, &sure, &maybe, ret);
	dwt_entries_fini(&sure);
	dwt_entries_fini(&maybe);
	return err;
}

uint64_t dwt_entry_end(const struct fusee_unwinder_host *host, uint64_t file, uint64_t entry)
{
	uint8_t code[ENTRY_BYTES];
	struct dwt_insn in;
	size_t at = 0, n = sizeof(code);

	while (n && host->file_read(file, entry, code, (uint32_t)n))
		n /= 2;
	while (at < n && !dwt_insn(code + at, n - at, &in)) {
		if (in.nop && at) /* padding behind a call that does not return */
			break;
		at += in.len;
		if (in.effect == DWT_HALT || in.effect == DWT_JUMP || in.effect == DWT_RETURN)
			break;
	}
	return entry + (at ? at : ENTRY_BYTES);
}
