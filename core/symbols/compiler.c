// SPDX-License-Identifier: Apache-2.0
#include "symbols/compiler.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "symbols/internal/dwarf_image.h"
#include "symbols/internal/source.h"

#define MAX_COMMENT (64u << 10)
#define MAX_BUILDINFO (1u << 20)
#define MAX_DWARF (32u << 20) /* of all its sections */
#define MAX_UNITS 64u
#define BUILDINFO_MAGIC "\xff Go buildinf:"
#define BUILDINFO_HEAD 32u
#define BUILDINFO_INLINE 2u /* of the flags at 15: texts follow the header */

/* Appends the text up to `end`. 0; -ENOENT: it is empty or too long; -ENOMEM. */
static int add_text(struct buf *to, const char *text, size_t len, const char *end)
{
	const char *at = memmem(text, len, end, strlen(end));
	int err;

	len = at ? (size_t)(at - text) : len;
	if (len > COMPILER_MAX)
		for (len = COMPILER_MAX; len && (text[len] & 0xc0) == 0x80;)
			len--; /* not within a character */
	err = utf8_clean_printable(to, text, len);
	if (err)
		return err;
	return to->len && to->len <= COMPILER_MAX ? 0 : -ENOENT; /* U+FFFD takes three bytes */
}

/* ---- .go.buildinfo ---- */

/* "go1.22.1", whose length is written in seven bits a byte. */
static int of_go(const char *p, size_t len, struct buf *text)
{
	size_t n, at = BUILDINFO_HEAD;

	if (len < BUILDINFO_HEAD + 1 || memcmp(p, BUILDINFO_MAGIC, sizeof(BUILDINFO_MAGIC) - 1) ||
	    !((unsigned char)p[15] & BUILDINFO_INLINE))
		return -ENOENT;
	n = (unsigned char)p[at++];
	if (n & 0x80) /* a version is shorter than what two bytes can say */
		n = (n & 0x7f) | (at < len ? (size_t)(unsigned char)p[at++] << 7 : 0);
	if (n > len - at || n > COMPILER_MAX / 2 || n < 3 || memcmp(p + at, "go", 2))
		return -ENOENT;
	buf_str(text, "Go cmd/compile ");
	return text->error ? text->error : add_text(text, p + at, n, " ");
}

/* ---- .comment ---- */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* The section has terminated texts; source_load() adds a NUL byte. */
static int of_comment(const char *p, size_t len, struct buf *text)
{
	const char *gcc = NULL, *other = NULL;

	for (size_t at = 0; at < len; at += strlen(p + at) + 1) {
		const char *t = p + at;

		if (begins(t, "GCC: "))
			gcc = t;
		else if (*t && !begins(t, "Linker: ") && !begins(t, "mold "))
			other = t;
	}
	other = other ? other : gcc;
	return other ? add_text(text, other, strlen(other), "\n") : -ENOENT;
}

/* ---- DWARF ---- */

/* "GNU C17 12.2.0 -mtune=generic -g", "Go cmd/compile go1.19.8; regabi". */
static int of_producer(const char *p, struct buf *text)
{
	const char *options = strstr(p, " -"), *more = strchr(p, ';');
	size_t len = strlen(p);

	len = options ? (size_t)(options - p) : len;
	len = more && (size_t)(more - p) < len ? (size_t)(more - p) : len;
	return add_text(text, p, len, "\n");
}

/* Of the first unit that has a producer other than the assembler. */
static int of_units(Dwarf *dw, struct buf *text)
{
	Dwarf_Off at = 0, next;
	size_t head;

	for (uint32_t i = 0; i < MAX_UNITS; i++, at = next) {
		Dwarf_Attribute attribute;
		const char *producer = NULL;
		Dwarf_Die unit;

		if (dwarf_nextcu(dw, at, &next, &head, NULL, NULL, NULL) || next <= at)
			break;
		if (dwarf_offdie(dw, at + head, &unit) &&
		    dwarf_attr(&unit, DW_AT_producer, &attribute))
			producer = dwarf_formstring(&attribute);
		if (producer && *producer && !begins(producer, "GNU AS "))
			return of_producer(producer, text);
	}
	return -ENOENT;
}

static int of_dwarf(const struct source *src, struct buf *text)
{
	const struct source_section *s;
	struct dwarf_image image;
	uint64_t bytes = 0;
	Dwarf *dw;
	int r;

	for (size_t i = 0; (s = source_section(src, i)) && bytes <= MAX_DWARF; i++)
		if (begins(s->name, ".debug_"))
			bytes += s->size <= MAX_DWARF ? s->size : MAX_DWARF + 1;
	r = bytes > MAX_DWARF ? -ENOENT : dwarf_image_make(&image, src);
	if (r)
		return r;
	dw = dwarf_begin_elf(image.elf, DWARF_C_READ, NULL);
	r = dw ? of_units(dw, text) : -EBADMSG;
	dwarf_end(dw);
	dwarf_image_fini(&image);
	return r;
}

/* ---- all ---- */

static int of_section(const struct source *src, const char *name, uint64_t max,
		      int (*read)(const char *, size_t, struct buf *), struct buf *text)
{
	size_t len;
	char *p;
	int r = source_load(src, name, max, &p, &len);

	if (r)
		return r == -EFBIG ? -ENOENT : r;
	r = read(p, len, text);
	free(p);
	return r;
}

int compiler_of(const struct source *src, struct buf *text)
{
	int r = of_section(src, ".go.buildinfo", MAX_BUILDINFO, of_go, text);

	if (r == -ENOENT)
		r = of_section(src, ".comment", MAX_COMMENT, of_comment, text);
	if (r == -ENOENT)
		r = of_dwarf(src, text);
	if (r && r != -ENOMEM)
		buf_reset(text);
	return r;
}
