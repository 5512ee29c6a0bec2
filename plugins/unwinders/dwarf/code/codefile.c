/* SPDX-License-Identifier: Apache-2.0 */
#include "codefile.h"

#include <errno.h>
#include <string.h>

#include "code.h"
#include "data.h"
#include "../noreturn.h"
#include "refs.h"
#include "text.h"
#include "../cursor.h"
#include <fusee/insn.h>

#define R_X86_64_RELATIVE 8
#define ENTRY_BYTES 64
enum { STT_FUNC = 2, STT_IFUNC = 10, SYMBOL = 24, RELA = 24 };

/* Is it `foo.cold`, `foo.cold.3` or `foo.__part.2`: code that a compiler has moved out of foo? Such
 * a part begins with what foo has pushed. */
static int is_part(const struct fusee_str *names, uint64_t at)
{
	static const char *const parts[] = {".cold", ".__part."};
	uint64_t len = at < names->len ? strnlen(names->p + at, names->len - at) : 0;

	if (!len || !memchr(names->p + at, '.', len))
		return 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t n = strlen(parts[i]);
		const char *p = memmem(names->p + at, len, parts[i], n);
		uint64_t end = p ? (uint64_t)(p - names->p) + n : 0;

		if (p && (parts[i][n - 1] == '.' || end == at + len || names->p[end] == '.'))
			return 1;
	}
	return 0;
}

/* Adds the functions, and moved parts of functions, of a symbol table. */
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

/* ---- which text is read ---- */

uint64_t codefile_cpu_ns = CODEFILE_CPU_NS;
uint64_t codefile_wall_ns = CODEFILE_WALL_NS;
uint64_t codefile_most = CODEFILE_MOST;

#define STRETCH_GAP (64u << 10)     /* bytes between two stretches that are read apart */
#define LONG_STRETCHES (128u << 10) /* bytes without rows */
#define MAX_PIECE (4u << 20) /* bytes that are read at once: they take 12 times that in memory */

/* Is there nothing but padding between two functions? */
static int is_padding(const struct code *text, uint64_t lo, uint64_t hi)
{
	size_t at = lo - text->vaddr, end = hi - text->vaddr;

	while (at < end) {
		struct insn in;

		if (text->bytes[at] == 0xcc || !text->bytes[at]) {
			at++;
			continue;
		}
		if (fusee_insn_decode(text->bytes + at, end - at, &in) || !in.nop)
			return 0;
		at += in.len;
	}
	return 1;
}

/* Adds a stretch of text without rows, as a pair of addresses, or extends the pair before. */
static int add_stretch(struct code_entries *e, const struct code *text, uint64_t lo, uint64_t hi)
{
	int err;

	if (lo >= hi || is_padding(text, lo, hi))
		return 0;
	if (e->n && lo - e->p[e->n - 1] <= STRETCH_GAP) {
		e->p[e->n - 1] = hi;
		return 0;
	}
	err = code_entries_add(e, lo);
	return err ? err : code_entries_add(e, hi);
}

static int find_stretches(struct code_entries *s, const struct code *text)
{
	const struct rows *known = text->known;
	uint64_t at = text->vaddr, end = at + text->len;
	int err = 0;

	for (size_t i = 0; i < known->n && !err; i++) {
		uint64_t lo = ROW_VADDR(known->p[i]);
		uint64_t hi = i + 1 < known->n ? ROW_VADDR(known->p[i + 1]) : lo;

		if (ROW_RULE(known->p[i]) == DWARF_RULE_NONE || hi <= at)
			continue;
		err = add_stretch(s, text, at, lo < end ? lo : end);
		at = hi;
	}
	return err ? err : add_stretch(s, text, at, end);
}

static int read_piece(struct table_build *build, const struct code *text, uint64_t lo, uint64_t len,
		      const struct code_entries *all_maybe, struct rows *ret)
{
	struct code_entries sure = {0}, maybe = {0};
	struct code code = *text;
	int err;

	code.bytes += lo - text->vaddr;
	code.vaddr = lo;
	code.len = len;
	err = code_entries_copy(&sure, text->functions, lo, lo + len);
	if (!err)
		err = code_entries_copy(&maybe, all_maybe, lo, lo + len);
	if (!err)
		err = code_read(build, &code, &sure, &maybe, ret);
	code_entries_fini(&sure);
	code_entries_fini(&maybe);
	return err;
}

/* What the ELF entry calls, and points to. It aligns the stack first, and no path goes on behind
 * that.
 */
static int add_calls_of_entry(const struct code *code, uint64_t entry, struct code_entries *sure,
			      struct code_entries *maybe)
{
	size_t at, end;
	struct insn in;
	int err = 0;

	if (!code_text_has(code, entry, &at))
		return 0;
	for (end = at + ENTRY_BYTES; !err && at < end && !code_decode(code, at, &in);
	     at += in.len) {
		if (in.effect == INSN_CALL && in.has_target && in.target != in.len)
			err = code_entries_add(sure, code->vaddr + at + (uint64_t)in.target);
		else if (in.address)
			err = code_entries_add(maybe, code->vaddr + at + (uint64_t)in.address);
		if (code_text_ends(&in))
			break;
	}
	return err;
}

static int add_entries(const struct fusee_unwinder_host *host, uint64_t file, uint64_t entry,
		       struct code *code, struct code_entries *sure, struct code_entries *maybe)
{
	int err = code_entries_add(sure, entry);

	if (!err)
		err = add_symbols(host, file, ".symtab", ".strtab", sure, code);
	code->symbols = sure->n > 1;
	if (!err)
		err = add_symbols(host, file, ".dynsym", ".dynstr", sure, code);
	if (!err)
		err = code_noreturn_stubs(host, file, &code->noreturn);
	if (!err)
		err = add_calls_of_entry(code, entry, sure, maybe);
	if (!err)
		err = add_pointers(host, file, code->vaddr, code->vaddr + code->len, maybe);
	code_entries_sort(&code->noreturn);
	code_entries_sort(sure);
	return err;
}

/* Words that are addresses: by relocations, or as they are. */
static int add_words(const struct fusee_unwinder_host *host, uint64_t file, struct code_data *data)
{
	static const char *const names[] = {".rodata", ".data.rel.ro", ".data"};
	struct fusee_section s;
	int err = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (fusee_file_section(host, file, names[i], &s))
			continue;
		code_data_add_part(data, &(struct code_bytes){(const uint8_t *)s.bytes.p,
							      s.bytes.len, s.vaddr});
	}
	if (fusee_file_section(host, file, ".rela.dyn", &s))
		return 0;
	for (uint64_t at = 0; !err && s.bytes.len - at >= RELA; at += RELA)
		if (load_u64(s.bytes.p + at + 8) == R_X86_64_RELATIVE)
			err = code_data_add(data, load_u64(s.bytes.p + at),
					    load_u64(s.bytes.p + at + 16));
	code_data_sort(data);
	return err;
}

/* A piece ends before a function that begins in its second half, if there is one. */
static uint64_t piece_end(uint64_t lo, uint64_t hi, const struct code_entries *sure)
{
	uint64_t at;

	if (hi - lo <= MAX_PIECE)
		return hi;
	at = code_entries_last(sure, lo + MAX_PIECE);
	return at > lo + MAX_PIECE / 2 ? at : lo + MAX_PIECE;
}

/* A piece has no rows if there is no memory or no time for it. */
static int try_piece(struct table_build *build, const struct code *code, uint64_t lo, uint64_t len,
		     const struct code_entries *maybe, struct rows *ret)
{
	size_t n = ret->n;
	int err = -ENOMEM;

	if (table_cpu_ns() - build->began_ns >= codefile_cpu_ns)
		;
	else if (table_wall_ns() - build->began_wall_ns >= codefile_wall_ns)
		build->late += len;
	else
		err = read_piece(build, code, lo, len, maybe, ret);
	if (err != -ENOMEM)
		return err;
	ret->n = n;
	build->unread += len;
	return 0;
}

static int read_pieces(struct table_build *build, const struct code *code,
		       const struct code_entries *stretches, const struct code_entries *maybe,
		       struct rows *ret)
{
	int err = 0;

	for (size_t i = 0; i + 1 < stretches->n && !err; i += 2) {
		uint64_t lo = stretches->p[i], hi = stretches->p[i + 1], end;

		for (; lo < hi && !err; lo = end) {
			end = piece_end(lo, hi, code->functions);
			err = try_piece(build, code, lo, end - lo, maybe, ret);
		}
	}
	return err;
}

static int read_stretches(struct table_build *build, const struct fusee_unwinder_host *host,
			  uint64_t file, uint64_t entry, const struct code_entries *stretches,
			  struct code *code, struct rows *ret)
{
	struct code_entries sure = {0}, maybe = {0};
	struct code_data data = {0};
	int err = add_entries(host, file, entry, code, &sure, &maybe);

	if (!err)
		err = code_refs_add(code, stretches, &maybe);
	code_entries_sort(&maybe);
	if (!err)
		err = add_words(host, file, &data);
	code->pointers = &data;
	code->functions = &sure;
	if (!err)
		err = read_pieces(build, code, stretches, &maybe, ret);
	code_entries_fini(&sure);
	code_entries_fini(&maybe);
	code_entries_fini(&code->parts);
	code_entries_fini(&code->noreturn);
	code_data_fini(&data);
	return err;
}

static uint64_t bytes_of(const struct code_entries *stretches)
{
	uint64_t n = 0;

	for (size_t i = 0; i + 1 < stretches->n; i += 2)
		n += stretches->p[i + 1] - stretches->p[i];
	return n;
}

/* May reading the code take longer than reading the descriptions? */
static int takes_long(const struct code_entries *stretches, const struct code *code)
{
	return stretches->n && (code->len > CODEFILE_LONG || bytes_of(stretches) > LONG_STRETCHES);
}

/* A step there stops, and the sample waits until the code has been read. */
static int omit(struct table_build *build, const struct code_entries *stretches, struct rows *ret)
{
	int err = 0;

	for (size_t i = 0; i + 1 < stretches->n && !err; i += 2) {
		err = rows_add(ret, stretches->p[i], DWARF_RULE_EXPRESSION);
		if (!err)
			err = rows_add(ret, stretches->p[i + 1], DWARF_RULE_NONE);
	}
	build->omitted += bytes_of(stretches);
	return err;
}

int codefile_add(struct table_build *build, const struct fusee_unwinder_host *host, uint64_t file,
		 const struct fusee_file_info *info, const struct rows *known, struct rows *ret)
{
	struct fusee_section text, data;
	struct code_entries stretches = {0};
	struct code code;
	int err;

	if (fusee_file_section(host, file, ".text", &text) ||
	    !table_in_text(build, text.vaddr, text.vaddr + text.bytes.len))
		return 0;
	code = (struct code){.bytes = (const uint8_t *)text.bytes.p,
			     .len = text.bytes.len,
			     .vaddr = text.vaddr,
			     .known = known,
			     .file_lo = text.vaddr,
			     .file_hi = text.vaddr + text.bytes.len};
	if (!fusee_file_section(host, file, ".rodata", &data))
		code.data = (struct code_bytes){(const uint8_t *)data.bytes.p, data.bytes.len,
						data.vaddr};
	err = find_stretches(&stretches, &code);
	if (!err && bytes_of(&stretches) > codefile_most)
		build->unread += bytes_of(&stretches);
	else if (!err && info->flags & FUSEE_FILE_BRIEF && takes_long(&stretches, &code))
		err = omit(build, &stretches, ret);
	else if (!err && stretches.n)
		err = read_stretches(build, host, file, info->entry, &stretches, &code, ret);
	code_entries_fini(&stretches);
	return err;
}

/* A stub jumps, or pushes its number and jumps to the first stub, which pushes once more. Padding
 * behind a jump has no row. */
int codefile_add_plt(const struct table_build *build, const struct fusee_unwinder_host *host,
		     uint64_t file, const char *name, struct rows *ret)
{
	struct fusee_section s;
	const uint8_t *p;
	size_t at = 0, first = ret->n;
	uint32_t pushed, last = DWARF_RULE_NONE;
	int err = 0, behind = 0;

	if (fusee_file_section(host, file, name, &s) || s.bytes.len < 2 ||
	    !table_in_text(build, s.vaddr, s.vaddr + s.bytes.len))
		return 0;
	p = (const uint8_t *)s.bytes.p;
	pushed = p[0] == 0xff && p[1] == 0x35; /* push n(%rip): the first stub */
	while (at < s.bytes.len && !err) {
		uint32_t rule;
		struct insn in;

		if (fusee_insn_decode(p + at, s.bytes.len - at, &in) || pushed > 4 ||
		    (in.effect != INSN_NOTHING && in.effect != INSN_PUSH &&
		     in.effect != INSN_JUMP && in.effect != INSN_HALT)) {
			ret->n = first; /* of another form */
			return 0;
		}
		behind &= in.nop || in.effect == INSN_HALT;
		rule = behind ? DWARF_RULE_NONE : DWARF_RULE_SP(pushed + 1, 0);
		if (rule != last)
			err = rows_add(ret, s.vaddr + at, rule);
		last = rule;
		behind |= in.effect == INSN_JUMP;
		pushed = in.effect == INSN_JUMP ? 0 : pushed + (in.effect == INSN_PUSH);
		at += in.len;
	}
	return err ? err : rows_add(ret, s.vaddr + s.bytes.len, DWARF_RULE_NONE);
}

uint64_t codefile_entry_end(const struct fusee_unwinder_host *host, uint64_t file, uint64_t entry)
{
	uint8_t code[ENTRY_BYTES];
	struct insn in;
	size_t at = 0, n = sizeof(code);

	while (n && host->file_read(file, entry, code, (uint32_t)n))
		n /= 2;
	while (at < n && !fusee_insn_decode(code + at, n - at, &in)) {
		if (in.nop && at) /* padding behind a call that does not return */
			break;
		at += in.len;
		if (in.effect == INSN_HALT || in.effect == INSN_JUMP || in.effect == INSN_RETURN ||
		    in.effect == INSN_ODD_RETURN)
			break;
	}
	return entry + (at ? at : ENTRY_BYTES);
}
