/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a file: the page index of all columns, then the footer (FileMetaData) and its length.
 */
#include <zlib.h>

#include "internal.h"

#define CREATED_BY "fusee version " FUSEE_VERSION " (build 0)"

enum { REQUIRED = 0, REPEATED = 2 };
/* numbers of types in SchemaElement: converted_type, and the field of LogicalType */
enum { CONVERTED_UTF8 = 0, CONVERTED_MAP = 1, CONVERTED_LIST = 3, CONVERTED_TIMESTAMP = 10 };
enum { LOGICAL_STRING = 1, LOGICAL_MAP = 2, LOGICAL_LIST = 3, LOGICAL_TIMESTAMP = 8 };

static void put_empty(struct pq_struct *parent, int field)
{
	struct pq_struct s = pq_begin(parent, field);

	pq_end(&s);
}

static void put_logical(struct pq_struct *parent, int kind)
{
	struct pq_struct logical = pq_begin(parent, 10), s, unit;

	if (kind == LOGICAL_TIMESTAMP) {
		s = pq_begin(&logical, kind);
		pq_bool(&s, 1, true); /* UTC */
		unit = pq_begin(&s, 2);
		put_empty(&unit, 2); /* microseconds */
		pq_end(&unit);
		pq_end(&s);
	} else {
		put_empty(&logical, kind);
	}
	pq_end(&logical);
}

/* Readers know either the converted type or the logical type, so both are written. */
static void put_leaf(struct fusee_bytes *to, const struct fusee_parquet_column *c)
{
	struct pq_struct s = pq_begin_element(to);

	pq_i32(&s, 1, pq_physical_type(c->type));
	pq_i32(&s, 3, REQUIRED);
	pq_binary(&s, 4, fusee_text(c->name));
	if (c->type == FUSEE_PARQUET_TEXT) {
		pq_i32(&s, 6, CONVERTED_UTF8);
		put_logical(&s, LOGICAL_STRING);
	} else if (c->type == FUSEE_PARQUET_TIME) {
		pq_i32(&s, 6, CONVERTED_TIMESTAMP);
		put_logical(&s, LOGICAL_TIMESTAMP);
	}
	pq_end(&s);
}

static void put_inner(struct fusee_bytes *to, const char *name, int repetition, uint32_t children,
		      int converted, int logical)
{
	struct pq_struct s = pq_begin_element(to);

	pq_i32(&s, 3, repetition);
	pq_binary(&s, 4, fusee_text(name));
	pq_i32(&s, 5, (int32_t)children);
	if (logical) {
		pq_i32(&s, 6, converted);
		put_logical(&s, logical);
	}
	pq_end(&s);
}

static uint32_t put_group(struct fusee_parquet *w, const struct pq_group *g, struct fusee_bytes *to)
{
	const struct fusee_parquet_column *c = &w->leaves[g->first].column;
	uint32_t n = g->n;

	if (c->group == FUSEE_PARQUET_MAP) {
		put_inner(to, c->in, REQUIRED, 1, CONVERTED_MAP, LOGICAL_MAP);
		put_inner(to, "key_value", REPEATED, 2, 0, 0);
		n += 2;
	} else if (c->group == FUSEE_PARQUET_LIST) {
		put_inner(to, c->in, REQUIRED, 1, CONVERTED_LIST, LOGICAL_LIST);
		put_inner(to, "list", REPEATED, 1, 0, 0);
		if (!g->values)
			put_inner(to, "element", REQUIRED, g->n, 0, 0);
		n += g->values ? 2 : 3;
	}
	for (uint32_t i = 0; i < g->n; i++)
		put_leaf(to, &w->leaves[g->first + i].column);
	return n;
}

static void put_schema(struct fusee_parquet *w, struct pq_struct *s)
{
	struct fusee_bytes elements = {0};
	struct pq_struct root;
	uint32_t n = 1;

	for (uint32_t i = 0; i < w->ngroups; i++)
		n += put_group(w, &w->groups[i], &elements);
	pq_list(s, 2, PQ_STRUCT, n);
	root = pq_begin_element(s->to);
	pq_binary(&root, 4, fusee_text("schema"));
	pq_i32(&root, 5, (int32_t)w->ngroups);
	pq_end(&root);
	fusee_bytes_add(s->to, elements.p, elements.len);
	if (elements.error)
		s->to->error = elements.error;
	fusee_bytes_fini(&elements);
}

static void put_chunk(const struct pq_chunk *c, struct fusee_bytes *to)
{
	struct pq_struct s = pq_begin_element(to), metadata;

	pq_i64(&s, 2, 0);
	metadata = pq_begin(&s, 3);
	fusee_bytes_add(to, c->metadata.p, c->metadata.len);
	metadata.last = PQ_METADATA_LAST;
	if (c->filter.len) {
		pq_i64(&metadata, 14, (int64_t)c->filter_at);
		pq_i32(&metadata, 15, (int32_t)c->filter.len);
	}
	pq_end(&metadata);
	pq_i64(&s, 4, (int64_t)c->offset_index_at);
	pq_i32(&s, 5, (int32_t)c->offset_index.len);
	if (c->column_index.len) {
		pq_i64(&s, 6, (int64_t)c->column_index_at);
		pq_i32(&s, 7, (int32_t)c->column_index.len);
	}
	pq_end(&s);
}

/* Files cannot say that rows are sorted by lists. */
static struct fusee_table flat_sort(const struct fusee_parquet *w)
{
	struct fusee_table sort = w->o.sort;
	uint32_t n = 0;

	while (n < sort.n &&
	       w->leaves[*FUSEE_AT(uint32_t, sort, n)].column.group == FUSEE_PARQUET_FLAT)
		n++;
	sort.n = n;
	return sort;
}

static void put_row_group(struct fusee_parquet *w, const struct pq_row_group *g,
			  struct fusee_bytes *to)
{
	struct pq_struct s = pq_begin_element(to);
	struct fusee_table sort = flat_sort(w);

	pq_list(&s, 1, PQ_STRUCT, w->nleaves);
	for (uint32_t i = 0; i < w->nleaves; i++)
		put_chunk(&g->chunks[i], to);
	pq_i64(&s, 2, (int64_t)g->raw_bytes);
	pq_i64(&s, 3, (int64_t)g->rows);
	if (sort.n)
		pq_list(&s, 4, PQ_STRUCT, sort.n);
	FUSEE_FOR_EACH (uint32_t, column, sort) {
		struct pq_struct by = pq_begin_element(to);

		pq_i32(&by, 1, (int32_t)*column);
		pq_bool(&by, 2, false);
		pq_bool(&by, 3, false);
		pq_end(&by);
	}
	pq_i64(&s, 6, (int64_t)g->bytes);
	pq_end(&s);
}

/* The file's own pairs, and that of the checksum, which is computed when the footer is complete. */
static void put_pairs(struct fusee_parquet *w, struct pq_struct *s, size_t *checksum_at)
{
	struct pq_struct pair;

	pq_list(s, 5, PQ_STRUCT, w->npairs + 1);
	fusee_bytes_add(s->to, w->metadata.p, w->metadata.len);
	pair = pq_begin_element(s->to);
	pq_binary(&pair, 1, fusee_text(PQ_CHECKSUM));
	pq_binary(&pair, 2, fusee_text("00000000"));
	*checksum_at = s->to->len - 8;
	pq_end(&pair);
}

static void put_footer(struct fusee_parquet *w, struct fusee_bytes *to)
{
	struct pq_struct s = pq_begin_element(to);
	size_t checksum_at;
	char digits[9];

	pq_i32(&s, 1, 1);
	put_schema(w, &s);
	pq_i64(&s, 3, (int64_t)w->total_rows);
	pq_list(&s, 4, PQ_STRUCT, (uint32_t)w->nrow_groups);
	for (uint64_t i = 0; i < w->nrow_groups; i++)
		put_row_group(w, &w->row_groups[i], to);
	put_pairs(w, &s, &checksum_at);
	pq_binary(&s, 6, fusee_text(CREATED_BY));
	pq_list(&s, 7, PQ_STRUCT, w->nleaves);
	for (uint32_t i = 0; i < w->nleaves; i++) {
		struct pq_struct order = pq_begin_element(to);

		put_empty(&order, 1); /* by type */
		pq_end(&order);
	}
	pq_end(&s);
	if (to->error)
		return;
	snprintf(digits, sizeof(digits), "%08lx",
		 crc32_z(0, (const Bytef *)to->p, to->len) & 0xffffffff);
	memcpy(to->p + checksum_at, digits, 8);
}

/* Page indexes of all columns: first those with bounds, then those with places. */
static int write_indexes(struct fusee_parquet *w, bool bounds)
{
	for (uint64_t i = 0; i < w->nrow_groups * w->nleaves; i++) {
		struct pq_chunk *c = &w->row_groups[i / w->nleaves].chunks[i % w->nleaves];
		int r;

		*(bounds ? &c->column_index_at : &c->offset_index_at) = w->at;
		r = pq_write(w, bounds ? &c->column_index : &c->offset_index);
		if (r)
			return r;
	}
	return 0;
}

/* Bloom filters of all columns that have one, and their checksums as a pair. */
static int write_filters(struct fusee_parquet *w)
{
	struct fusee_bytes digits = {0};
	int r = 0;

	for (uint64_t i = 0; !r && i < w->nrow_groups * w->nleaves; i++) {
		struct pq_chunk *c = &w->row_groups[i / w->nleaves].chunks[i % w->nleaves];
		char text[9];

		if (!c->filter.len)
			continue;
		c->filter_at = w->at;
		snprintf(text, sizeof(text), "%08lx",
			 crc32_z(0, (const Bytef *)c->filter.p, c->filter.len) & 0xffffffff);
		fusee_bytes_add(&digits, text, 8);
		r = digits.error ? digits.error : pq_write(w, &c->filter);
	}
	if (!r && digits.len)
		fusee_parquet_metadata(w, fusee_text(PQ_FILTERS), fusee_bytes_str(&digits));
	fusee_bytes_fini(&digits);
	return r;
}

int pq_write_footer(struct fusee_parquet *w)
{
	struct fusee_bytes b = {0};
	int r = write_filters(w);

	if (!r)
		r = write_indexes(w, true);
	if (!r)
		r = write_indexes(w, false);
	if (r)
		return r;
	put_footer(w, &b);
	if (b.len > INT32_MAX)
		r = -EFBIG;
	fusee_bytes_number(&b, b.len, 4);
	fusee_bytes_add(&b, "PAR1", 4);
	r = r ? r : w->metadata.error ? w->metadata.error : pq_write(w, &b);
	fusee_bytes_fini(&b);
	return r;
}
