/* SPDX-License-Identifier: Apache-2.0 */
/* Rows arrive value by value. A row group is written when it has enough of them. */
#include <stdlib.h>
#include <unistd.h>
#include <sys/random.h>

#include "internal.h"

#define ROWS (1u << 17)
#define MAX_ROWS (1u << 24)
#define MEMORY (64ull << 20)
#define MAX_LEVEL 19

/* ---- the columns ---- */

static bool continues(const struct fusee_parquet_column *before,
		      const struct fusee_parquet_column *c)
{
	return before && c->group != FUSEE_PARQUET_FLAT && before->group == c->group &&
	       !strcmp(before->in, c->in);
}

static bool is_possible(const struct fusee_parquet_column *c)
{
	if (c->type < FUSEE_PARQUET_INT32 || c->type > FUSEE_PARQUET_TEXT ||
	    c->group > FUSEE_PARQUET_LIST || (c->group == FUSEE_PARQUET_FLAT) != !c->in)
		return false;
	if (c->group == FUSEE_PARQUET_MAP)
		return c->type == FUSEE_PARQUET_TEXT;
	return c->name ? *c->name != '\0' : c->group == FUSEE_PARQUET_LIST;
}

/* A map has two columns; a list of values one, whose name in files is "element". */
static bool complete_group(struct fusee_parquet *w, struct pq_group *g)
{
	struct pq_leaf *leaf = &w->leaves[g->first];

	if (leaf->column.group == FUSEE_PARQUET_MAP)
		return g->n == 2;
	for (uint32_t i = 0; i < g->n; i++)
		g->values |= !leaf[i].column.name;
	if (g->values)
		leaf->column.name = "element";
	return !g->values || g->n == 1;
}

static int set_columns(struct fusee_parquet *w)
{
	const struct fusee_parquet_column *before = NULL;
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uintptr_t)w ^ (uint64_t)getpid() << 32;
	FUSEE_FOR_EACH (struct fusee_parquet_column, c, w->o.columns) {
		struct pq_leaf *leaf = &w->leaves[w->nleaves];

		if (!is_possible(c))
			return -EINVAL;
		if (!continues(before, c))
			w->groups[w->ngroups++].first = w->nleaves;
		leaf->column = *c;
		leaf->group = w->ngroups - 1;
		leaf->dictionary.seed = seed;
		leaf->dictionary.is_text = c->type == FUSEE_PARQUET_TEXT;
		if (c->group == FUSEE_PARQUET_MAP)
			leaf->column.name = w->groups[leaf->group].n ? "value" : "key";
		w->groups[leaf->group].n++;
		w->nleaves++;
		before = c;
	}
	for (uint32_t i = 0; i < w->ngroups; i++)
		if (!complete_group(w, &w->groups[i]))
			return -EINVAL;
	return 0;
}

static int check_options(const struct fusee_parquet *w)
{
	FUSEE_FOR_EACH (uint32_t, column, w->o.sort) {
		if (*column >= w->nleaves ||
		    (w->leaves[*column].column.group != FUSEE_PARQUET_FLAT &&
		     !w->groups[w->leaves[*column].group].values))
			return -EINVAL;
	}
	FUSEE_FOR_EACH (uint32_t, column, w->o.filtered) {
		if (*column >= w->nleaves ||
		    w->leaves[*column].column.group != FUSEE_PARQUET_FLAT ||
		    w->leaves[*column].column.type != FUSEE_PARQUET_TEXT)
			return -EINVAL;
	}
	return !w->o.renumber || (w->o.renumbered < w->nleaves &&
				  w->leaves[w->o.renumbered].column.type == FUSEE_PARQUET_INT64 &&
				  w->leaves[w->o.renumbered].column.group == FUSEE_PARQUET_FLAT)
		       ? 0
		       : -EINVAL;
}

int fusee_parquet_new(struct fusee_parquet **out, const struct fusee_parquet_options *o)
{
	const struct fusee_bytes magic = {.p = (char *)(uintptr_t) "PAR1", .len = 4};
	struct fusee_parquet *w;
	int r;

	if (!o->columns.n || o->columns.n > FUSEE_PARQUET_MAX_COLUMNS ||
	    o->codec > FUSEE_PARQUET_NONE || o->level > MAX_LEVEL || !o->write)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->o = *o;
	w->o.rows = o->rows ? o->rows < MAX_ROWS ? o->rows : MAX_ROWS : ROWS;
	w->o.memory = o->memory ? o->memory : MEMORY;
	w->leaves = calloc(o->columns.n, sizeof(*w->leaves));
	w->groups = calloc(o->columns.n, sizeof(*w->groups));
	r = w->leaves && w->groups ? set_columns(w) : -ENOMEM;
	if (!r)
		r = check_options(w);
	if (!r)
		r = pq_write(w, &magic);
	if (r) {
		fusee_parquet_free(w);
		return r;
	}
	*out = w;
	return 0;
}

/* ---- a row group ---- */

/* Lists of rows x and y, from their ends. */
static int compare_lists(const struct pq_leaf *leaf, const uint64_t *ends, uint32_t x, uint32_t y)
{
	uint64_t i = ends[x], j = ends[y], first_i = x ? ends[x - 1] : 0,
		 first_j = y ? ends[y - 1] : 0;

	while (i > first_i && j > first_j) {
		uint32_t a = leaf->codes[--i], b = leaf->codes[--j];

		if (a != b)
			return a < b ? -1 : 1;
	}
	return (i > first_i) - (j > first_j);
}

static int compare_rows(const void *a, const void *b, void *writer)
{
	const struct fusee_parquet *w = writer;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	FUSEE_FOR_EACH (uint32_t, column, w->o.sort) {
		const struct pq_leaf *leaf = &w->leaves[*column];
		const struct pq_group *g = &w->groups[leaf->group];
		int r = g->values ? compare_lists(leaf, g->ends, x, y)
				  : (leaf->codes[x] > leaf->codes[y]) -
					    (leaf->codes[x] < leaf->codes[y]);

		if (r)
			return r;
	}
	return x < y ? -1 : x > y;
}

static int sort_leaf(struct pq_leaf *leaf)
{
	uint32_t *ranks = malloc((leaf->dictionary.n + 1ull) * sizeof(*ranks));
	int r = ranks ? pq_dictionary_sort(&leaf->dictionary, ranks) : -ENOMEM;

	for (uint64_t i = 0; !r && i < leaf->n; i++)
		leaf->codes[i] = ranks[leaf->codes[i]];
	free(ranks);
	return r;
}

/* Rows are in the order of the old numbers, which is also the order of the new numbers unless some
 * numbers are known from another row group. */
static int renumber(struct fusee_parquet *w)
{
	struct pq_leaf *leaf = &w->leaves[w->o.renumbered];
	struct pq_dictionary *d = &leaf->dictionary;
	uint8_t *done = calloc(d->n + 1ull, 1);
	int r = done ? 0 : -ENOMEM;

	for (uint64_t i = 0; !r && i < w->rows; i++) {
		uint32_t code = leaf->codes[w->order[i]];
		int64_t to;

		if (done[code])
			continue;
		done[code] = 1;
		r = w->o.renumber(w->o.arg, (int64_t)d->values[code], &to);
		d->values[code] = (uint64_t)to;
	}
	free(done);
	if (!r)
		r = sort_leaf(leaf);
	if (!r)
		qsort_r(w->order, w->rows, sizeof(*w->order), compare_rows, w);
	return r;
}

static int sort_rows(struct fusee_parquet *w)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < w->nleaves; i++)
		r = sort_leaf(&w->leaves[i]);
	free(w->order);
	w->order = r ? NULL : malloc(w->rows * sizeof(*w->order));
	if (!w->order)
		return r ? r : -ENOMEM;
	for (uint32_t i = 0; i < w->rows; i++)
		w->order[i] = i;
	qsort_r(w->order, w->rows, sizeof(*w->order), compare_rows, w);
	return w->o.renumber ? renumber(w) : 0;
}

static void empty_leaves(struct fusee_parquet *w)
{
	for (uint32_t i = 0; i < w->nleaves; i++) {
		w->leaves[i].n = w->leaves[i].ended = 0;
		pq_dictionary_empty(&w->leaves[i].dictionary);
	}
	w->rows = 0;
}

static int write_row_group(struct fusee_parquet *w)
{
	struct pq_row_group *g;
	uint64_t at = w->at, raw;
	int r = sort_rows(w);

	if (r)
		return r;
	if (w->nrow_groups == UINT32_MAX || !fusee_grow(&w->row_groups, &w->row_groups_cap,
							w->nrow_groups + 1, sizeof(*w->row_groups)))
		return -ENOMEM;
	g = &w->row_groups[w->nrow_groups];
	*g = (struct pq_row_group){.rows = w->rows};
	g->chunks = calloc(w->nleaves, sizeof(*g->chunks));
	if (!g->chunks)
		return -ENOMEM;
	w->nrow_groups++;
	for (uint32_t i = 0; !r && i < w->nleaves; i++) {
		r = pq_write_chunk(w, i, &g->chunks[i], &raw);
		g->raw_bytes += raw;
	}
	g->bytes = w->at - at;
	w->total_rows += w->rows;
	empty_leaves(w);
	return r;
}

/* ---- rows ---- */

static void add(struct fusee_parquet *w, struct pq_leaf *leaf, int64_t code)
{
	if (code < 0)
		w->error = (int)code;
	else if (leaf->n - leaf->ended >= FUSEE_PARQUET_MAX_VALUES)
		w->error = -E2BIG;
	else if (!fusee_grow(&leaf->codes, &leaf->cap, leaf->n + 1, sizeof(*leaf->codes)))
		w->error = -ENOMEM;
	else
		leaf->codes[leaf->n++] = (uint32_t)code;
}

static struct pq_leaf *leaf_of(struct fusee_parquet *w, uint32_t column, bool text)
{
	if (w->error)
		return NULL;
	if (column >= w->nleaves || w->finished || w->leaves[column].dictionary.is_text != text) {
		w->error = -EINVAL;
		return NULL;
	}
	return &w->leaves[column];
}

void fusee_parquet_int(struct fusee_parquet *w, uint32_t column, int64_t value)
{
	struct pq_leaf *leaf = leaf_of(w, column, false);

	if (!leaf)
		return;
	if (leaf->column.type == FUSEE_PARQUET_INT32 && value != (int32_t)value)
		w->error = -ERANGE;
	else
		add(w, leaf, pq_dictionary_number(&leaf->dictionary, value));
}

void fusee_parquet_text(struct fusee_parquet *w, uint32_t column, struct fusee_str text)
{
	struct pq_leaf *leaf = leaf_of(w, column, true);

	if (!leaf)
		return;
	if (text.len > FUSEE_PARQUET_MAX_TEXT)
		w->error = -E2BIG;
	else
		add(w, leaf,
		    pq_dictionary_text(&leaf->dictionary, text.len ? text : fusee_text("")));
}

static int end_group(struct fusee_parquet *w, struct pq_group *g)
{
	uint64_t n = w->leaves[g->first].n - w->leaves[g->first].ended;
	bool flat = w->leaves[g->first].column.group == FUSEE_PARQUET_FLAT;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		if (w->leaves[i].n - w->leaves[i].ended != n || (flat && n != 1))
			return -EINVAL;
		w->leaves[i].ended = w->leaves[i].n;
	}
	if (flat)
		return 0;
	if (!fusee_grow(&g->ends, &g->cap, w->rows + 1, sizeof(*g->ends)))
		return -ENOMEM;
	g->ends[w->rows] = w->leaves[g->first].n;
	return 0;
}

static uint64_t memory_of(const struct fusee_parquet *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->ngroups; i++)
		if (w->leaves[w->groups[i].first].column.group != FUSEE_PARQUET_FLAT)
			sum += w->rows * sizeof(*w->groups->ends);
	for (uint32_t i = 0; i < w->nleaves; i++)
		sum += w->leaves[i].n * sizeof(uint32_t) +
		       pq_dictionary_bytes(&w->leaves[i].dictionary);
	return sum;
}

int fusee_parquet_row(struct fusee_parquet *w)
{
	if (w->finished && !w->error)
		w->error = -EINVAL;
	for (uint32_t i = 0; !w->error && i < w->ngroups; i++)
		w->error = end_group(w, &w->groups[i]);
	if (w->error)
		return w->error;
	if (++w->rows >= w->o.rows || memory_of(w) >= w->o.memory)
		w->error = write_row_group(w);
	return w->error;
}

int fusee_parquet_end_group(struct fusee_parquet *w)
{
	for (uint32_t i = 0; !w->error && i < w->nleaves; i++)
		if (w->leaves[i].n != w->leaves[i].ended || w->finished)
			w->error = -EINVAL;
	if (!w->error && w->rows)
		w->error = write_row_group(w);
	return w->error;
}

void fusee_parquet_metadata(struct fusee_parquet *w, struct fusee_str key, struct fusee_str value)
{
	struct pq_struct s = pq_begin_element(&w->metadata);

	if (!w->error && (!pq_is_utf8(key) || !pq_is_utf8(value)))
		w->error = -EILSEQ;
	pq_binary(&s, 1, key);
	pq_binary(&s, 2, value);
	pq_end(&s);
	w->npairs++;
}

/* Frees the memory of the rows of a row group. */
static void free_rows(struct fusee_parquet *w)
{
	for (uint32_t i = 0; w->leaves && i < w->nleaves; i++) {
		struct pq_leaf *leaf = &w->leaves[i];

		pq_dictionary_fini(&leaf->dictionary);
		free(leaf->codes);
		leaf->codes = NULL;
		leaf->n = leaf->cap = leaf->ended = 0;
	}
}

int fusee_parquet_finish(struct fusee_parquet *w)
{
	if (!fusee_parquet_end_group(w))
		w->error = pq_write_footer(w);
	w->finished = true;
	free_rows(w);
	return w->error;
}

uint64_t fusee_parquet_bytes(const struct fusee_parquet *w)
{
	return w->at;
}

uint64_t fusee_parquet_rows(const struct fusee_parquet *w)
{
	return w->total_rows;
}

static void free_row_groups(struct fusee_parquet *w)
{
	for (uint64_t i = 0; i < w->nrow_groups; i++) {
		for (uint32_t k = 0; k < w->nleaves; k++)
			pq_chunk_fini(&w->row_groups[i].chunks[k]);
		free(w->row_groups[i].chunks);
	}
	free(w->row_groups);
}

void fusee_parquet_free(struct fusee_parquet *w)
{
	if (!w)
		return;
	free_row_groups(w);
	free_rows(w);
	for (uint32_t i = 0; w->groups && i < w->ngroups; i++)
		free(w->groups[i].ends);
	free(w->leaves);
	free(w->groups);
	fusee_bytes_fini(&w->metadata);
	fusee_bytes_fini(&w->body);
	fusee_bytes_fini(&w->stored);
	fusee_bytes_fini(&w->header);
	fusee_bytes_fini(&w->levels);
	free(w->page.codes);
	free(w->page.repetition);
	free(w->page.definition);
	free(w->order);
	free(w);
}
