// SPDX-License-Identifier: Apache-2.0
/* Walks the code of a file, from span to span. */
#include "names/make.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/dict.h"
#include "base/utf8.h"
#include "names/names.h"

#define MAX_SECTIONS 4096u
#define MAX_LOOKUPS (2u << 20) /* of one file */

struct maker {
	struct symbols *symbols;
	struct buf rows, frames;
	struct dict functions, texts; /* struct names_function, with ids of texts as positions */
	uint64_t at;                  /* the address that is looked up */
	uint32_t lookups, frames_before;
	bool is_stub;        /* of the address: a stub with its own number */
	uint64_t text_bytes; /* of the address; without changed characters */
	int err;
};

static uint32_t count(const struct buf *b, size_t size)
{
	return (uint32_t)(b->len / size);
}

static bool is_stub_at(const struct symbols_frame *f, uint64_t at)
{
	char text[32];

	snprintf(text, sizeof(text), "+0x%llx", (unsigned long long)at);
	return f->flags == SYMBOLS_STUB && !strcmp(f->name, text) &&
	       !strcmp(f->system_name, text) && !*f->file && !f->line && !f->column &&
	       !f->start_line;
}

static uint32_t id_of(struct maker *m, uint32_t id)
{
	if (id == DICT_NONE)
		m->err = -ENOMEM;
	return id;
}

static void add_frame(void *arg, const struct symbols_frame *f)
{
	struct maker *m = arg;
	struct names_function function = {
		.name = id_of(m, dict_str(&m->texts, f->name)),
		.system_name = id_of(m, dict_str(&m->texts, f->system_name)),
		.file = id_of(m, dict_str(&m->texts, f->file)),
		.start_line = f->start_line,
		.flags = f->flags & (SYMBOLS_STUB | SYMBOLS_INLINED),
	};
	struct names_frame frame = {.line = f->line, .column = f->column};

	m->text_bytes += strlen(f->name) + strlen(f->system_name) + strlen(f->file) + 3;
	m->is_stub = is_stub_at(f, m->at) && count(&m->frames, sizeof(frame)) == m->frames_before;
	frame.function = id_of(m, dict_add(&m->functions, &function, sizeof(function)));
	buf_add(&m->frames, &frame, sizeof(frame));
}

/* Whether the last row has the same frames: then it is the row of these addresses too. */
static bool is_same(const struct maker *m, const struct names_row *row)
{
	const struct names_frame *f = (const void *)m->frames.p;
	const struct names_row *last;

	if (!m->rows.len)
		return !row->n;
	last = (const void *)(m->rows.p + m->rows.len - sizeof(*last));
	if (last->n != row->n || last->first == NAMES_STUB || row->first == NAMES_STUB)
		return false;
	return !row->n || !memcmp(f + last->first, f + row->first, row->n * sizeof(*f));
}

/* The frames that were added behind the row's first are its own. */
static int add_row(struct maker *m, struct names_row row)
{
	bool same = is_same(m, &row);

	if (row.first == NAMES_STUB || same)
		m->frames.len = m->frames_before * sizeof(struct names_frame);
	return same ? 0 : buf_add(&m->rows, &row, sizeof(row));
}

static int add_unknown(struct maker *m, uint64_t at)
{
	m->frames_before = count(&m->frames, sizeof(struct names_frame));
	return add_row(m, (struct names_row){.lo = at, .first = m->frames_before});
}

/* *at becomes the end of its span. */
static int add_span(struct maker *m, uint64_t *at)
{
	struct names_row row = {.lo = *at};
	struct symbols_span span;
	int err;

	m->at = *at;
	m->is_stub = false;
	m->text_bytes = 0;
	row.first = m->frames_before = count(&m->frames, sizeof(struct names_frame));
	if (m->lookups++ == MAX_LOOKUPS)
		return -EFBIG;
	err = symbols_lookup_span(m->symbols, *at, add_frame, m, &span);
	if (!err)
		err = m->err ? m->err : m->frames.error;
	if (err)
		return err;
	*at = span.hi;
	row.n = count(&m->frames, sizeof(struct names_frame)) - row.first;
	if (row.n > NAMES_MAX_FRAMES || m->text_bytes * 3 > NAMES_MAX_TEXTS || span.alone) {
		row.n = 0;
		m->frames.len = row.first * sizeof(struct names_frame);
	} else if (m->is_stub && row.n == 1) {
		row.first = NAMES_STUB;
	}
	if (m->rows.len + m->frames.len + m->texts.bytes > NAMES_MAX_BYTES)
		return -EFBIG;
	return add_row(m, row);
}

static int by_start(const void *a, const void *b)
{
	const struct symbols_span *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Sections of a malformed file may overlap. */
static int walk(struct maker *m)
{
	struct symbols_span *code = calloc(MAX_SECTIONS, sizeof(*code));
	uint64_t at = 0;
	uint32_t n = 0;
	int err = code ? 0 : -ENOMEM;

	while (code && n < MAX_SECTIONS && symbols_code(m->symbols, n, &code[n]))
		n++;
	if (n)
		qsort(code, n, sizeof(*code), by_start);
	for (uint32_t i = 0; !err && i < n; i++) {
		at = code[i].lo > at ? code[i].lo : at;
		while (!err && at < code[i].hi)
			err = add_span(m, &at);
		if (!err && at >= code[i].hi && at > code[i].lo)
			err = add_unknown(m, at);
	}
	free(code);
	return err ? err : m->rows.error;
}

/* ---- the table ---- */

/* Lays the texts out; replaces ids of texts by positions in the copies of the functions. */
static int place_texts(struct maker *m, struct buf *functions, struct buf *texts)
{
	uint32_t *at = malloc(((size_t)m->texts.n + 1) * sizeof(*at));

	if (!at)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->texts.n; i++) {
		at[i] = (uint32_t)texts->len;
		utf8_clean_printable(texts, m->texts.entries[i].key, m->texts.entries[i].len);
		buf_add(texts, "", 1);
		if (texts->len > NAMES_MAX_BYTES)
			break;
	}
	for (uint32_t i = 1; texts->len <= NAMES_MAX_BYTES && i < m->functions.n; i++) {
		struct names_function f;

		memcpy(&f, m->functions.entries[i].key, sizeof(f));
		f.name = at[f.name];
		f.system_name = at[f.system_name];
		f.file = at[f.file];
		buf_add(functions, &f, sizeof(f));
	}
	free(at);
	if (texts->len > NAMES_MAX_BYTES)
		return -EFBIG;
	return texts->error ? texts->error : functions->error;
}

static void add_sums(struct buf *b, uint64_t body)
{
	for (uint64_t at = 0; at < body; at += NAMES_PAGE) {
		uint64_t n = body - at < NAMES_PAGE ? body - at : NAMES_PAGE;
		uint64_t sum = XXH3_64bits_withSeed(b->p + at, n, at / NAMES_PAGE);

		if (buf_add(b, &sum, sizeof(sum)))
			return;
	}
}

static int put_together(struct maker *m, struct buf *b, uint32_t quality)
{
	struct names_head head = {.magic = NAMES_MAGIC,
				  .version = NAMES_VERSION,
				  .rows = count(&m->rows, sizeof(struct names_row)),
				  .frames = count(&m->frames, sizeof(struct names_frame)),
				  .quality = quality};
	struct buf functions = {0}, texts = {0};
	int err = place_texts(m, &functions, &texts);
	uint64_t body;

	head.functions = count(&functions, sizeof(struct names_function));
	head.texts = texts.len;
	body = (sizeof(head) + m->rows.len + m->frames.len + functions.len + texts.len + 7) & ~7ull;
	head.bytes = body + (body + NAMES_PAGE - 1) / NAMES_PAGE * 8;
	if (!err && head.bytes > NAMES_MAX_BYTES)
		err = -EFBIG;
	if (!err) {
		buf_add(b, &head, sizeof(head));
		buf_add(b, m->rows.p, m->rows.len);
		buf_add(b, m->frames.p, m->frames.len);
		buf_add(b, functions.p, functions.len);
		buf_add(b, texts.p, texts.len);
		buf_add(b, "\0\0\0\0\0\0\0", body - b->len);
		if (!b->error)
			add_sums(b, body);
		err = b->error;
	}
	buf_fini(&functions);
	buf_fini(&texts);
	return err;
}

int names_make(struct buf *b, struct symbols *s, uint32_t (*quality)(const struct symbols *))
{
	struct maker m = {.symbols = s};
	struct symbols_quality q;
	const uint8_t *id;
	uint32_t n;
	int err;

	symbols_quality(s, &q);
	/* Programs without debug information may name a dwz file all the same. */
	if (q.gopclntab || (q.dwarf && symbols_missing_alt(s, &id, &n)))
		return -ENOTSUP;
	err = dict_init(&m.texts);
	if (!err)
		err = dict_init(&m.functions);
	if (!err)
		err = walk(&m);
	if (!err)
		err = put_together(&m, b, quality(s));
	buf_fini(&m.rows);
	buf_fini(&m.frames);
	dict_fini(&m.functions);
	dict_fini(&m.texts);
	return err;
}
