/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A column of a row group: a dictionary page or none, then data pages, as chunk.c writes them. The
 * dictionary stays in the bytes of its page; of data pages only codes or numbers are kept.
 */
#include <stdlib.h>
#include <zlib.h>

#include "read_internal.h"

enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum { PLAIN = 0, RLE = 3, DELTA_BINARY_PACKED = 5, RLE_DICTIONARY = 8 };

/* The result for the caller; `v` is first. */
struct loaded {
	struct fusee_parquet_values v;
	uint8_t *dictionary; /* its page, which texts point into */
	uint32_t *codes;
	int64_t *numbers;
	struct fusee_str *texts;
	uint64_t *ends;
};

/* A page's header. */
struct page {
	int64_t kind, raw, stored, crc, nvalues, encoding;
	bool has_crc;
	const uint8_t *bytes;
};

struct load {
	struct fusee_parquet_file *f;
	const struct fusee_parquet_column *column;
	const struct pq_place *place;
	struct loaded *to;
	struct pq_in in; /* the pages */
	uint64_t rows, nrows, nlevels, memory;
	bool nested, dictionary;
	const char **why;
};

static int damaged(struct load *l)
{
	*l->why = "a page is damaged";
	return -EINVAL;
}

/* Makes room for n more elements, within the limit of memory. */
static int reserve(struct load *l, void *array, uint64_t have, uint64_t n, size_t size)
{
	void *at, *more;

	if (n > (l->f->in.memory - l->memory) / size) {
		*l->why = "a column takes more memory than may be used";
		return -EFBIG;
	}
	memcpy(&at, array, sizeof(at));
	more = realloc(at, (have + n) * size + 1);
	if (!more)
		return -ENOMEM;
	memcpy(array, &more, sizeof(more));
	l->memory += n * size;
	return 0;
}

/* ---- pages ---- */

static void get_kind(struct pq_in *in, const struct pq_field *parent, struct page *p)
{
	struct pq_field f = {0};

	pq_check_type(in, parent, PQ_STRUCT);
	while (pq_next(in, &f))
		if (f.id == 1)
			p->nvalues = pq_get_int(in, &f, PQ_I32, 0, INT32_MAX);
		else if (f.id == 2)
			p->encoding = pq_get_int(in, &f, PQ_I32, 0, RLE_DICTIONARY);
		else if (f.id <= 4 && parent->id == 5)
			pq_get_int(in, &f, PQ_I32, RLE, RLE); /* of levels */
		else
			pq_skip(in, &f);
}

static void get_header(struct pq_in *in, struct page *p)
{
	struct pq_field f = {0};

	*p = (struct page){.kind = -1, .encoding = -1};
	while (pq_next(in, &f))
		if (f.id == 1) {
			p->kind = pq_get_int(in, &f, PQ_I32, DATA_PAGE, DICTIONARY_PAGE);
		} else if (f.id == 2) {
			p->raw = pq_get_int(in, &f, PQ_I32, 0, INT32_MAX);
		} else if (f.id == 3) {
			p->stored = pq_get_int(in, &f, PQ_I32, 0, INT32_MAX);
		} else if (f.id == 4) {
			p->crc = pq_get_int(in, &f, PQ_I32, INT32_MIN, INT32_MAX);
			p->has_crc = true;
		} else if ((f.id == 5 && p->kind == DATA_PAGE) ||
			   (f.id == 7 && p->kind == DICTIONARY_PAGE)) {
			get_kind(in, &f, p);
		} else {
			in->bad = true;
		}
	p->bytes = pq_get_bytes(in, (uint64_t)p->stored);
}

/* Whether the page may have this encoding; numbers without a dictionary have either of two. */
static bool is_encoding(const struct load *l, const struct page *p, int encoding)
{
	return p->encoding == encoding ||
	       (p->encoding == DELTA_BINARY_PACKED && p->kind == DATA_PAGE && encoding == PLAIN &&
		l->column->type == FUSEE_PARQUET_INT64);
}

/* Takes a page. *body: its bytes, decompressed; to be freed. */
static int get_page(struct load *l, struct page *p, int kind, int encoding, uint8_t **body)
{
	int r;

	get_header(&l->in, p);
	if (l->in.bad || p->kind != kind || !is_encoding(l, p, encoding) || !p->has_crc)
		return damaged(l);
	if ((int32_t)crc32_z(0, p->bytes, (size_t)p->stored) != p->crc) {
		*l->why = "the checksum of a page is wrong";
		return -EINVAL;
	}
	*body = NULL;
	r = reserve(l, body, 0, (uint64_t)p->raw, 1);
	if (r)
		return r;
	r = pq_decompress(l->place->codec, p->bytes, (size_t)p->stored, *body, (size_t)p->raw);
	if (!r)
		return 0;
	free(*body);
	*body = NULL;
	return r == -EINVAL ? damaged(l) : r;
}

/* ---- the dictionary ---- */

static int get_dictionary(struct load *l)
{
	struct loaded *to = l->to;
	bool is_text = l->column->type == FUSEE_PARQUET_TEXT;
	struct pq_in in;
	struct page p;
	int r = get_page(l, &p, DICTIONARY_PAGE, PLAIN, &to->dictionary);

	if (r)
		return r;
	in = (struct pq_in){to->dictionary, to->dictionary + p.raw, false};
	if (p.nvalues > p.raw / 4)
		return damaged(l);
	r = is_text ? reserve(l, &to->texts, 0, (uint64_t)p.nvalues, sizeof(*to->texts))
		    : reserve(l, &to->numbers, 0, (uint64_t)p.nvalues, sizeof(*to->numbers));
	if (r)
		return r;
	if (is_text)
		pq_get_texts(&in, to->texts, (uint64_t)p.nvalues);
	else
		pq_get_numbers(&in, l->column->type, to->numbers, (uint64_t)p.nvalues);
	to->v.ndistinct = (uint32_t)p.nvalues;
	return in.bad || in.at != in.end ? damaged(l) : 0;
}

/* ---- data pages ---- */

/* Reads 1-bit levels, which follow their length. */
static int get_levels(struct load *l, struct pq_in *in, uint32_t *to, uint64_t n)
{
	uint64_t len = pq_get_number(in, 4);
	const uint8_t *p = pq_get_bytes(in, len);
	struct pq_in levels = {p, p ? p + len : p, !p};

	pq_get_hybrid(&levels, 1, to, n);
	return levels.bad || levels.at != levels.end ? damaged(l) : 0;
}

/* repetition 0 begins a row, definition 1 has a value: a row has one level at least. */
static int add_rows(struct load *l, const uint32_t *repetition, const uint32_t *definition,
		    uint64_t n, uint64_t *nvalues)
{
	uint64_t *ends = l->to->ends;
	uint64_t more = 0; /* values that the row may still have */

	*nvalues = 0;
	for (uint64_t i = 0; i < n; i++) {
		if (repetition[i] ? !more || !definition[i] : l->nrows == l->rows)
			return damaged(l);
		l->nrows += !repetition[i];
		more = !definition[i] ? 0 : repetition[i] ? more - 1 : FUSEE_PARQUET_MAX_VALUES - 1;
		*nvalues += definition[i];
		ends[l->nrows - 1] = l->to->v.n + *nvalues;
	}
	return 0;
}

static int get_rows(struct load *l, struct pq_in *in, uint64_t n, uint64_t *nvalues)
{
	uint32_t *levels = NULL;
	uint64_t before = l->memory;
	int r;

	if (!l->nested) {
		l->nrows += n;
		*nvalues = n;
		return 0;
	}
	r = reserve(l, &levels, 0, 2 * n, sizeof(*levels));
	if (!r)
		r = get_levels(l, in, levels, n);
	if (!r)
		r = get_levels(l, in, levels + n, n);
	if (!r)
		r = add_rows(l, levels, levels + n, n, nvalues);
	free(levels);
	l->memory = before;
	return r;
}

static int get_codes(struct load *l, struct pq_in *in, uint64_t n)
{
	struct loaded *to = l->to;
	unsigned int bits = (unsigned int)pq_get_number(in, 1);
	int r = bits == 8 || bits == 16 || bits == 32 ? 0 : damaged(l);

	if (!r)
		r = reserve(l, &to->codes, to->v.n, n, sizeof(*to->codes));
	if (r)
		return r;
	pq_get_hybrid(in, bits, to->codes + to->v.n, n);
	for (uint64_t i = 0; !in->bad && i < n; i++)
		if (to->codes[to->v.n + i] >= to->v.ndistinct)
			in->bad = true;
	return 0;
}

static int get_values(struct load *l, struct pq_in *in, uint64_t n, bool delta)
{
	struct loaded *to = l->to;
	int r;

	if (l->dictionary) {
		r = get_codes(l, in, n);
	} else {
		r = reserve(l, &to->numbers, to->v.n, n, sizeof(*to->numbers));
		if (!r && delta)
			pq_get_delta(in, to->numbers + to->v.n, n);
		else if (!r)
			pq_get_numbers(in, l->column->type, to->numbers + to->v.n, n);
	}
	if (r)
		return r;
	to->v.n += n;
	return in->bad || in->at != in->end ? damaged(l) : 0;
}

static int get_data(struct load *l)
{
	uint64_t before = l->memory, n, nvalues;
	uint8_t *body = NULL;
	struct pq_in in;
	struct page p;
	int r = get_page(l, &p, DATA_PAGE, l->dictionary ? RLE_DICTIONARY : PLAIN, &body);

	if (r)
		return r;
	n = (uint64_t)p.nvalues;
	in = (struct pq_in){body, body + p.raw, false};
	r = n && n <= l->place->levels - l->nlevels ? 0 : damaged(l);
	l->nlevels += n;
	if (!r)
		r = get_rows(l, &in, n, &nvalues);
	if (!r)
		r = get_values(l, &in, nvalues, p.encoding == DELTA_BINARY_PACKED);
	free(body);
	if (!r)
		l->memory -= (uint64_t)p.raw;
	else
		l->memory = before;
	return r;
}

static int get_pages(struct load *l)
{
	int r = 0;

	if (l->nested)
		r = reserve(l, &l->to->ends, 0, l->rows, sizeof(*l->to->ends));
	if (!r && l->dictionary)
		r = get_dictionary(l);
	else if (!r && l->column->type == FUSEE_PARQUET_TEXT)
		r = damaged(l);
	while (!r && l->in.at != l->in.end)
		r = get_data(l);
	return r || (l->nrows == l->rows && l->nlevels == l->place->levels) ? r : damaged(l);
}

/* ---- a column ---- */

static int get_distinct(struct load *l)
{
	int r;

	if (!l->dictionary) {
		*l->why = "a column has no dictionary";
		return -EINVAL;
	}
	r = get_dictionary(l);
	return r || l->in.at == l->in.end ? r : damaged(l);
}

static void describe(struct load *l, uint64_t bytes)
{
	struct loaded *to = l->to;

	to->v.codes = l->dictionary ? to->codes : NULL;
	to->v.numbers = to->numbers;
	to->v.texts = to->texts;
	to->v.ends = to->ends;
	to->v.bytes = bytes;
	to->v.memory = l->memory - bytes;
	if (!l->dictionary)
		to->v.ndistinct = (uint32_t)to->v.n;
}

/* `get` takes the column's bytes before `end`. */
static int load(struct fusee_parquet_file *f, uint32_t group, uint32_t column, uint64_t end,
		int (*get)(struct load *), struct fusee_parquet_values **out, const char **why)
{
	const struct pq_place *p = &f->groups[group].places[column];
	struct load l = {.f = f, .column = &f->columns[column], .place = p, .why = why};
	uint64_t n = end - p->at;
	uint8_t *bytes = NULL;
	int r;

	l.rows = f->groups[group].rows;
	l.nested = l.column->group != FUSEE_PARQUET_FLAT;
	l.dictionary = p->at != p->data_at;
	l.to = calloc(1, sizeof(*l.to));
	if (!l.to)
		return -ENOMEM;
	r = reserve(&l, &bytes, 0, n, 1);
	if (!r)
		r = f->in.read(f->in.arg, p->at, bytes, n);
	if (!r) {
		l.in = (struct pq_in){bytes, bytes + n, false};
		r = get(&l);
	}
	free(bytes);
	if (r) {
		fusee_parquet_unload(&l.to->v);
		return r;
	}
	describe(&l, n);
	*out = &l.to->v;
	return 0;
}

int fusee_parquet_load(struct fusee_parquet_file *f, uint32_t group, uint32_t column,
		       struct fusee_parquet_values **out, const char **why)
{
	return load(f, group, column, f->groups[group].places[column].end, get_pages, out, why);
}

int fusee_parquet_load_distinct(struct fusee_parquet_file *f, uint32_t group, uint32_t column,
				struct fusee_parquet_values **out, const char **why)
{
	return load(f, group, column, f->groups[group].places[column].data_at, get_distinct, out,
		    why);
}

void fusee_parquet_unload(struct fusee_parquet_values *v)
{
	struct loaded *l = (struct loaded *)v;

	if (!l)
		return;
	free(l->dictionary);
	free(l->codes);
	free(l->numbers);
	free(l->texts);
	free(l->ends);
	free(l);
}
