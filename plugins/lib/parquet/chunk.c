/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A column of a row group: a dictionary page unless most values are distinct numbers, or they
 * ascend; then data pages of version 1. The dictionary is sorted, so that codes compare as their
 * values do.
 */
#include <stdlib.h>
#include <zlib.h>

#include "internal.h"

#define PAGE_ROWS 20000
#define FEW 256               /* distinct numbers whose codes take a byte */
#define PAGE_VALUES (1 << 18) /* a page ends with the row that reaches it */

enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum { PLAIN = 0, RLE = 3, DELTA_BINARY_PACKED = 5, RLE_DICTIONARY = 8 };

struct chunk {
	struct fusee_parquet *w;
	struct pq_leaf *leaf;
	bool dictionary, nested, delta;
	uint64_t dictionary_at, data_at, raw, nlevels;
	uint32_t npages;
	struct fusee_bytes mins, maxs, places; /* of pages, as Thrift's elements */
	struct fusee_bytes last_min, last_max; /* bounds of the previous page */
	bool ascending;
};

int pq_physical_type(uint32_t type)
{
	return type == FUSEE_PARQUET_INT32 ? 1 : type == FUSEE_PARQUET_TEXT ? 6 : 2;
}

/* ---- bounds ---- */

/* Appends a value for statistics; of a long text a shorter bound. */
static bool put_bound(struct fusee_bytes *to, const struct pq_leaf *leaf, uint32_t code, bool upper)
{
	struct fusee_str s;
	char room[64];
	bool exact = true;

	to->len = 0;
	if (leaf->column.type != FUSEE_PARQUET_TEXT) {
		pq_put_value(to, &leaf->dictionary, leaf->column.type, code);
		return true;
	}
	s = pq_dictionary_text_at(&leaf->dictionary, code);
	s = upper ? pq_upper_bound(s, room, &exact) : pq_lower_bound(s, &exact);
	fusee_bytes_add(to, s.p, s.len);
	return exact;
}

static struct fusee_str text_of(const struct fusee_bytes *b)
{
	return (struct fusee_str){(const char *)b->p, b->len};
}

static int64_t number_of(struct fusee_str s)
{
	int64_t v = 0;
	int32_t small;

	memcpy(s.len == 4 ? (void *)&small : &v, s.p, s.len);
	return s.len == 4 ? small : v;
}

static bool is_less(const struct pq_leaf *leaf, struct fusee_str a, struct fusee_str b)
{
	uint64_t n = a.len < b.len ? a.len : b.len;
	int r;

	if (leaf->column.type != FUSEE_PARQUET_TEXT)
		return number_of(a) < number_of(b);
	r = n ? memcmp(a.p, b.p, n) : 0;
	return r ? r < 0 : a.len < b.len;
}

/* Adds a page's bound to those of the page index. Bounds of ascending texts need not ascend. */
static void add_bound(struct chunk *c, uint32_t code, bool upper)
{
	struct fusee_bytes *last = upper ? &c->last_max : &c->last_min, bound = {0};

	put_bound(&bound, c->leaf, code, upper);
	if (bound.error)
		last->error = bound.error;
	else if (c->npages && is_less(c->leaf, text_of(&bound), text_of(last)))
		c->ascending = false;
	pq_put_binary(upper ? &c->maxs : &c->mins, text_of(&bound));
	last->len = 0;
	fusee_bytes_add(last, bound.p, bound.len);
	fusee_bytes_fini(&bound);
}

static void add_bounds(struct chunk *c)
{
	const struct pq_page *p = &c->w->page;
	uint32_t min = UINT32_MAX, max = 0;

	for (uint64_t i = 0; i < p->ncodes; i++) {
		min = p->codes[i] < min ? p->codes[i] : min;
		max = p->codes[i] > max ? p->codes[i] : max;
	}
	add_bound(c, min, false);
	add_bound(c, max, true);
}

/* ---- pages ---- */

/* The encoding of data pages. */
static int encoding_of(const struct chunk *c)
{
	return c->dictionary ? RLE_DICTIONARY : c->delta ? DELTA_BINARY_PACKED : PLAIN;
}

/* Writes w->body as a page: its header comes first, with `what` in the field of its kind. */
static int write_page(struct chunk *c, int kind, uint32_t nvalues)
{
	struct fusee_parquet *w = c->w;
	struct pq_struct s = pq_begin_element(&w->header), more;
	int r = pq_compress(&w->o, &w->body, &w->stored);

	if (r)
		return r;
	if (w->stored.len > INT32_MAX)
		return -E2BIG;
	w->header.len = 0;
	pq_i32(&s, 1, kind);
	pq_i32(&s, 2, (int32_t)w->body.len);
	pq_i32(&s, 3, (int32_t)w->stored.len);
	pq_i32(&s, 4, (int32_t)crc32_z(0, (const Bytef *)w->stored.p, w->stored.len));
	more = pq_begin(&s, kind == DICTIONARY_PAGE ? 7 : 5);
	pq_i32(&more, 1, (int32_t)nvalues);
	pq_i32(&more, 2, kind == DICTIONARY_PAGE ? PLAIN : encoding_of(c));
	if (kind == DICTIONARY_PAGE) {
		pq_bool(&more, 3, true); /* sorted */
	} else {
		pq_i32(&more, 3, RLE);
		pq_i32(&more, 4, RLE);
	}
	pq_end(&more);
	pq_end(&s);
	c->raw += w->header.len + w->body.len;
	r = pq_write(w, &w->header);
	return r ? r : pq_write(w, &w->stored);
}

static int write_dictionary(struct chunk *c)
{
	const struct pq_dictionary *d = &c->leaf->dictionary;

	c->dictionary_at = c->w->at;
	c->w->body.len = 0;
	pq_put_plain(&c->w->body, d, c->leaf->column.type, NULL, d->n);
	return write_page(c, DICTIONARY_PAGE, d->n);
}

/* Adds the values of a row to the page. A row without values has levels, too. */
static int add_row(struct chunk *c, uint32_t row)
{
	const struct pq_group *g = &c->w->groups[c->leaf->group];
	uint64_t at = c->nested ? row ? g->ends[row - 1] : 0 : row,
		 n = c->nested ? g->ends[row] - at : 1;
	struct pq_page *p = &c->w->page;

	if (!fusee_grow(&p->codes, &p->codes_cap, p->ncodes + n, sizeof(*p->codes)))
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++)
		p->codes[p->ncodes++] = c->leaf->codes[at + i];
	if (!c->nested) {
		p->nlevels++;
		return 0;
	}
	if (!fusee_grow(&p->repetition, &p->repetition_cap, p->nlevels + n + 1, sizeof(uint32_t)) ||
	    !fusee_grow(&p->definition, &p->definition_cap, p->nlevels + n + 1, sizeof(uint32_t)))
		return -ENOMEM;
	for (uint64_t i = 0; i < (n ? n : 1); i++) {
		p->repetition[p->nlevels] = i > 0;
		p->definition[p->nlevels++] = n > 0;
	}
	return 0;
}

static void put_levels(struct fusee_parquet *w, const uint32_t *levels)
{
	w->levels.len = 0;
	pq_put_hybrid(&w->levels, levels, w->page.nlevels, 1);
	if (w->levels.error)
		w->body.error = w->levels.error;
	fusee_bytes_number(&w->body, w->levels.len, 4);
	fusee_bytes_add(&w->body, w->levels.p, w->levels.len);
}

static int write_data(struct chunk *c, uint64_t first_row)
{
	struct fusee_parquet *w = c->w;
	const struct pq_dictionary *d = &c->leaf->dictionary;
	unsigned int size = pq_code_size(d->n);
	uint64_t at = w->at;
	struct pq_struct place = pq_begin_element(&c->places);
	int r;

	w->body.len = 0;
	if (c->nested) {
		put_levels(w, w->page.repetition);
		put_levels(w, w->page.definition);
	} else {
		add_bounds(c);
	}
	if (c->dictionary) {
		fusee_bytes_byte(&w->body, (uint8_t)(8 * size));
		pq_put_hybrid(&w->body, w->page.codes, w->page.ncodes, 8 * size);
	} else if (c->delta) {
		pq_put_delta(&w->body, d, w->page.codes, w->page.ncodes);
	} else {
		pq_put_plain(&w->body, d, c->leaf->column.type, w->page.codes, w->page.ncodes);
	}
	r = write_page(c, DATA_PAGE, (uint32_t)w->page.nlevels);
	pq_i64(&place, 1, (int64_t)at);
	pq_i32(&place, 2, (int32_t)(w->at - at));
	pq_i64(&place, 3, (int64_t)first_row);
	pq_end(&place);
	c->nlevels += w->page.nlevels;
	c->npages++;
	return r;
}

static int write_pages(struct chunk *c)
{
	struct fusee_parquet *w = c->w;
	int r = 0;

	c->data_at = w->at;
	for (uint64_t row = 0, first; !r && row < w->rows;) {
		first = row;
		w->page.ncodes = w->page.nlevels = 0;
		while (!r && row < w->rows && row - first < PAGE_ROWS &&
		       w->page.nlevels < PAGE_VALUES)
			r = add_row(c, w->order[row++]);
		if (!r)
			r = write_data(c, first);
	}
	return r;
}

/* ---- its metadata in the footer ---- */

static void put_statistics(struct chunk *c, struct pq_struct *parent)
{
	struct pq_struct s = pq_begin(parent, 12);
	struct fusee_bytes min = {0}, max = {0};
	bool max_exact = put_bound(&max, c->leaf, c->leaf->dictionary.n - 1, true),
	     min_exact = put_bound(&min, c->leaf, 0, false);

	pq_i64(&s, 3, 0); /* no nulls */
	pq_binary(&s, 5, text_of(&max));
	pq_binary(&s, 6, text_of(&min));
	pq_bool(&s, 7, max_exact);
	pq_bool(&s, 8, min_exact);
	pq_end(&s);
	if (min.error || max.error)
		s.to->error = -ENOMEM;
	fusee_bytes_fini(&min);
	fusee_bytes_fini(&max);
}

static void put_encodings(struct chunk *c, struct pq_struct *s)
{
	pq_list(s, 2, PQ_I32, 1u + c->nested + c->dictionary);
	pq_put_i32(s->to, c->delta ? DELTA_BINARY_PACKED : PLAIN);
	if (c->nested)
		pq_put_i32(s->to, RLE);
	if (c->dictionary)
		pq_put_i32(s->to, RLE_DICTIONARY);
}

/* The path of a column: its name, or the levels of a map or list. */
static void put_path(const struct pq_leaf *leaf, bool values, struct pq_struct *s)
{
	bool map = leaf->column.group == FUSEE_PARQUET_MAP, is_member = !map && !values;

	if (leaf->column.group == FUSEE_PARQUET_FLAT) {
		pq_list(s, 3, PQ_BINARY, 1);
	} else {
		pq_list(s, 3, PQ_BINARY, is_member ? 4 : 3);
		pq_put_binary(s->to, fusee_text(leaf->column.in));
		pq_put_binary(s->to, fusee_text(map ? "key_value" : "list"));
		if (is_member)
			pq_put_binary(s->to, fusee_text("element"));
	}
	pq_put_binary(s->to, fusee_text(leaf->column.name));
}

static void put_encoding_stats(struct chunk *c, struct pq_struct *parent)
{
	pq_list(parent, 13, PQ_STRUCT, 1u + c->dictionary);
	for (int data = !c->dictionary; data < 2; data++) {
		struct pq_struct s = pq_begin_element(parent->to);

		pq_i32(&s, 1, data ? DATA_PAGE : DICTIONARY_PAGE);
		pq_i32(&s, 2, data ? encoding_of(c) : PLAIN);
		pq_i32(&s, 3, data ? (int32_t)c->npages : 1);
		pq_end(&s);
	}
}

static void put_metadata(struct chunk *c, struct fusee_bytes *to)
{
	struct pq_struct s = pq_begin_element(to);

	pq_i32(&s, 1, pq_physical_type(c->leaf->column.type));
	put_encodings(c, &s);
	put_path(c->leaf, c->w->groups[c->leaf->group].values, &s);
	pq_i32(&s, 4, pq_codec_number(c->w->o.codec));
	pq_i64(&s, 5, (int64_t)c->nlevels);
	pq_i64(&s, 6, (int64_t)c->raw);
	pq_i64(&s, 7, (int64_t)(c->w->at - (c->dictionary ? c->dictionary_at : c->data_at)));
	pq_i64(&s, 9, (int64_t)c->data_at);
	if (c->dictionary)
		pq_i64(&s, 11, (int64_t)c->dictionary_at);
	if (!c->nested)
		put_statistics(c, &s);
	put_encoding_stats(c, &s);
}

static bool is_filtered(const struct chunk *c)
{
	FUSEE_FOR_EACH (uint32_t, column, c->w->o.filtered) {
		if (&c->w->leaves[*column] == c->leaf)
			return c->leaf->dictionary.n > 1; /* else bounds say it */
	}
	return false;
}

static void put_column_index(struct chunk *c, struct fusee_bytes *to)
{
	struct pq_struct s = pq_begin_element(to);

	pq_list(&s, 1, PQ_BOOL, c->npages);
	for (uint32_t i = 0; i < c->npages; i++)
		fusee_bytes_byte(to, 2); /* no page has nulls only */
	pq_list(&s, 2, PQ_BINARY, c->npages);
	fusee_bytes_add(to, c->mins.p, c->mins.len);
	pq_list(&s, 3, PQ_BINARY, c->npages);
	fusee_bytes_add(to, c->maxs.p, c->maxs.len);
	pq_i32(&s, 4, c->ascending);
	pq_list(&s, 5, PQ_I64, c->npages);
	for (uint32_t i = 0; i < c->npages; i++)
		pq_put_i64(to, 0);
	pq_end(&s);
}

static void put_offset_index(struct chunk *c, struct fusee_bytes *to)
{
	struct pq_struct s = pq_begin_element(to);

	pq_list(&s, 1, PQ_STRUCT, c->npages);
	fusee_bytes_add(to, c->places.p, c->places.len);
	pq_end(&s);
}

static int describe(struct chunk *c, struct pq_chunk *out)
{
	put_metadata(c, &out->metadata);
	if (!c->nested)
		put_column_index(c, &out->column_index);
	put_offset_index(c, &out->offset_index);
	if (is_filtered(c))
		pq_put_filter(&out->filter, &c->leaf->dictionary);
	if (c->mins.error || c->maxs.error || c->places.error || c->last_min.error ||
	    c->last_max.error || out->metadata.error || out->column_index.error ||
	    out->offset_index.error || out->filter.error)
		return -ENOMEM;
	return 0;
}

/* Whether the numbers ascend, so that differences are small. */
static bool is_ascending(const struct chunk *c)
{
	const struct pq_leaf *leaf = c->leaf;
	const uint32_t *order = c->w->order;

	if (c->nested || leaf->column.type != FUSEE_PARQUET_INT64 || leaf->dictionary.n < FEW)
		return false;
	for (uint64_t i = 1; i < c->w->rows; i++)
		if (leaf->codes[order[i]] < leaf->codes[order[i - 1]])
			return false;
	return true;
}

int pq_write_chunk(struct fusee_parquet *w, uint32_t leaf, struct pq_chunk *out, uint64_t *raw)
{
	struct chunk c = {.w = w, .leaf = &w->leaves[leaf], .ascending = true};
	int r = 0;

	c.nested = c.leaf->column.group != FUSEE_PARQUET_FLAT;
	c.delta = is_ascending(&c);
	c.dictionary = !c.delta && (c.leaf->column.type == FUSEE_PARQUET_TEXT ||
				    c.leaf->dictionary.n <= c.leaf->n / 2);
	if (c.dictionary)
		r = write_dictionary(&c);
	if (!r)
		r = write_pages(&c);
	if (!r)
		r = describe(&c, out);
	*raw = c.raw;
	fusee_bytes_fini(&c.mins);
	fusee_bytes_fini(&c.maxs);
	fusee_bytes_fini(&c.places);
	fusee_bytes_fini(&c.last_min);
	fusee_bytes_fini(&c.last_max);
	return r;
}

void pq_chunk_fini(struct pq_chunk *c)
{
	fusee_bytes_fini(&c->metadata);
	fusee_bytes_fini(&c->column_index);
	fusee_bytes_fini(&c->offset_index);
	fusee_bytes_fini(&c->filter);
}
