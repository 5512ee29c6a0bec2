/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the table in a file, and the start of the text that its addresses are relative to. */
#include <errno.h>
#include <string.h>

#include <fusee/gotable.h>
#include <fusee/helpers.h>

/* moduledata, since Go 1.16: pcHeader, six slices, findfunctab, minpc, maxpc, .. */
#define MINPC 160
#define MODULE_BYTES 176
#define R_X86_64_RELATIVE 8

/* The 8 bytes at p, which need not be aligned. The caller has checked that they are there. */
static uint64_t load_u64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Finds the table inside .data.rel.ro, where Go 1.19 has it if gcc links a PIE. */
static int find_inside(struct fusee_go_table *go, const struct fusee_section *s, uint64_t *vaddr)
{
	for (uint64_t at = (8 - s->vaddr % 8) % 8; s->bytes.len >= 64 && at <= s->bytes.len - 64;
	     at += 8) {
		uint64_t lo, hi;

		if (fusee_go_open(go, s->bytes.p + at, s->bytes.len - at) ||
		    fusee_go_span(go, &lo, &hi))
			continue;
		*vaddr = s->vaddr + at;
		return 0;
	}
	return -ENOENT;
}

static int find_table(struct fusee_go_table *go, const struct fusee_unwinder_host *host,
		      uint64_t file, uint64_t *vaddr)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	struct fusee_section s;

	for (size_t i = 0; i < 2; i++) {
		if (fusee_file_section(host, file, names[i], &s))
			continue;
		*vaddr = s.vaddr;
		return fusee_go_open(go, s.bytes.p, s.bytes.len);
	}
	/* only Go binaries have .go.buildinfo */
	if (fusee_file_section(host, file, ".go.buildinfo", &s) ||
	    fusee_file_section(host, file, ".data.rel.ro", &s))
		return -ENOENT;
	return find_inside(go, &s, vaddr);
}

/* ---- where the text begins ---- */

/* Returns where the text begins if minpc and maxpc span as much as the table; otherwise 0. */
static uint64_t text_from(const struct fusee_go_table *go, uint64_t minpc, uint64_t maxpc)
{
	uint64_t lo, hi;

	if (!minpc || minpc >= FUSEE_GO_MAX_ADDRESS || fusee_go_span(go, &lo, &hi) ||
	    maxpc - minpc != hi - lo || minpc < lo)
		return 0;
	return minpc - lo;
}

/* Finds moduledata by its first word, the table's address, and returns where the text begins; 0: it
 * is not found. */
static uint64_t text_by_module(const struct fusee_go_table *go, uint64_t table,
			       const struct fusee_unwinder_host *host, uint64_t file)
{
	static const char *const names[] = {".go.module", ".noptrdata", ".data", ".data.rel.ro"};
	struct fusee_section s;
	uint64_t text;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (fusee_file_section(host, file, names[i], &s) || s.bytes.len < MODULE_BYTES)
			continue;
		for (uint64_t at = (8 - s.vaddr % 8) % 8; at <= s.bytes.len - MODULE_BYTES;
		     at += 8) {
			if (load_u64(s.bytes.p + at) != table)
				continue;
			text = text_from(go, load_u64(s.bytes.p + at + MINPC),
					 load_u64(s.bytes.p + at + MINPC + 8));
			if (text)
				return text;
		}
	}
	return 0;
}

/* The addend of the relative relocation of `where`; 0: there is none. `r`: .rela.dyn. */
static uint64_t relocated(const struct fusee_section *r, uint64_t where)
{
	for (uint64_t at = 0; r->bytes.len - at >= 24; at += 24)
		if (load_u64(r->bytes.p + at) == where &&
		    load_u64(r->bytes.p + at + 8) == R_X86_64_RELATIVE)
			return load_u64(r->bytes.p + at + 16);
	return 0;
}

/* The same in position-independent binaries, where relocations fill moduledata. */
static uint64_t text_by_relocation(const struct fusee_go_table *go, uint64_t table,
				   const struct fusee_unwinder_host *host, uint64_t file)
{
	struct fusee_section r;
	int tries = 16;

	if (fusee_file_section(host, file, ".rela.dyn", &r) &&
	    fusee_file_section(host, file, ".rela", &r))
		return 0;
	for (uint64_t at = 0; r.bytes.len - at >= 24 && tries; at += 24) {
		uint64_t module = load_u64(r.bytes.p + at), text;

		if (load_u64(r.bytes.p + at + 8) != R_X86_64_RELATIVE ||
		    load_u64(r.bytes.p + at + 16) != table)
			continue;
		tries--;
		text = text_from(go, relocated(&r, module + MINPC),
				 relocated(&r, module + MINPC + 8));
		if (text)
			return text;
	}
	return 0;
}

static int find_text(struct fusee_go_table *go, uint64_t table,
		     const struct fusee_unwinder_host *host, uint64_t file)
{
	struct fusee_range at = {0};

	/* before Go 1.18 addresses are absolute; until Go 1.25 the header has the start of the
	 * text, 0 if it is relocated */
	if (go->version < FUSEE_GO_1_18 || go->text)
		return 0;
	go->text = text_by_module(go, table, host, file);
	if (!go->text)
		go->text = text_by_relocation(go, table, host, file);
	if (!go->text && !host->file_symbol(file, "runtime.text", &at))
		go->text = at.lo;
	return go->text && go->text < FUSEE_GO_MAX_ADDRESS ? 0 : -EBADMSG;
}

int fusee_go_find(struct fusee_go_table *go, const struct fusee_unwinder_host *host, uint64_t file)
{
	struct fusee_section code;
	uint64_t table = 0;
	int err = find_table(go, host, file, &table);

	if (!err)
		err = find_text(go, table, host, file);
	if (!err && !fusee_file_section(host, file, ".text", &code)) {
		go->code = (const uint8_t *)code.bytes.p;
		go->code_len = code.bytes.len;
		go->code_vaddr = code.vaddr;
	}
	return err;
}
