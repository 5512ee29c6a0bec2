/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a row group whose part, stack and needed labels are equal become one sample: the codes of
 * their columns distinguish them, and texts are read once for each sample.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/dict.h"
#include "base/saturate.h"
#include "parquet/internal/reading.h"

#define MAX_BYTES (256ull << 20) /* of sums of a row group */

/* Rows that are one sample. */
struct group {
	uint64_t n;
	uint32_t row; /* one of them */
};

struct sums {
	struct reading *r;
	const struct parquet_group_rows *rows;
	uint32_t columns[OWN + 2], n; /* needed columns besides the map: own labels, PID, TID */
	uint8_t *keys;                /* by code of KEY: it is needed; NULL: none is */
	struct dict known;            /* codes, as make_key() has them */
	struct buf groups, values; /* struct group, int64_t for each type: by number in `known` */
	struct buf key, last;      /* last: the key of the previous row, whose group is `number` */
	uint32_t number;
	uint32_t type_codes[2], type; /* of the previous row; type ntypes: none yet */
};

static const uint32_t value_columns[] = {SAMPLE_TYPE, UNIT, VALUE, COUNT};
static const uint32_t key_column[] = {KEY}, map_columns[] = {KEY, VALUE_OF_KEY};

static bool is_needed(const struct store_request *q, struct fusee_str key)
{
	for (uint32_t i = 0; i < q->nkeys; i++)
		if (str_equal(q->keys[i], key))
			return true;
	return selector_has(q->selector, key);
}

/* ---- columns ---- */

/* Loads the map, unless it has no needed key in the row group. */
static int load_map(struct sums *s)
{
	struct reading *r = s->r;
	int err = reading_load(r, key_column, 1);
	const struct fusee_parquet_values *v = r->t.values[KEY];
	bool any = false;

	if (err)
		return err;
	s->keys = calloc(v->ndistinct + 1ull, 1);
	if (!s->keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < v->ndistinct; i++) {
		s->keys[i] = is_needed(r->request, v->texts[i]);
		any |= s->keys[i];
	}
	if (!any) {
		free(s->keys);
		s->keys = NULL;
		return 0;
	}
	err = reading_load(r, map_columns, 2);
	if (!err && memcmp(v->ends, r->t.values[VALUE_OF_KEY]->ends, r->t.rows * sizeof(uint64_t)))
		err = reading_fail(r, "its labels are no map");
	return err;
}

static int load_columns(struct sums *s)
{
	struct reading *r = s->r;
	int err;

	for (uint32_t c = 0; c < OWN; c++)
		if (r->t.places[c] != PARQUET_LACKS &&
		    is_needed(r->request, fusee_text(parquet_own_labels[c])))
			s->columns[s->n++] = c;
	if (is_needed(r->request, fusee_text("pid")))
		s->columns[s->n++] = PID;
	if (is_needed(r->request, fusee_text("tid")))
		s->columns[s->n++] = TID;
	err = load_map(s);
	if (!err)
		err = reading_load(r, s->columns, s->n);
	return err ? err
		   : reading_load(r, value_columns, sizeof(value_columns) / sizeof(*value_columns));
}

/* ---- rows ---- */

static uint32_t code_at(const struct fusee_parquet_values *v, uint64_t i)
{
	return v->codes ? v->codes[i] : (uint32_t)v->numbers[i];
}

static bool make_key(struct sums *s, uint64_t row)
{
	const struct parquet_table *t = &s->r->t;
	uint64_t i = s->keys ? parquet_begin(t, KEY, row) : 0,
		 end = s->keys ? t->values[KEY]->ends[row] : 0;
	uint32_t *k;

	buf_reset(&s->key);
	k = buf_grow(&s->key, (2 + s->n + 2 * (end - i)) * sizeof(*k));
	if (!k)
		return false;
	*k++ = s->rows->parts[row];
	*k++ = s->rows->stacks ? s->rows->stacks[row] : 0;
	for (uint32_t c = 0; c < s->n; c++)
		*k++ = code_at(t->values[s->columns[c]], row);
	for (; i < end; i++) {
		uint32_t code = t->values[KEY]->codes[i];

		if (!s->keys[code])
			continue;
		*k++ = code;
		*k++ = t->values[VALUE_OF_KEY]->codes[i];
	}
	s->key.len = (size_t)((char *)k - s->key.p);
	return true;
}

/* The number of the row's group, which is added if it is new. 0: no memory. */
static uint32_t find_group(struct sums *s, uint64_t row)
{
	const struct group new = {.row = (uint32_t)row};
	size_t size = s->r->ntypes * sizeof(int64_t);
	struct buf last = s->last;
	char *values;

	if (!make_key(s, row))
		return 0;
	if (last.len == s->key.len && !memcmp(last.p, s->key.p, last.len))
		return s->number;
	s->number = dict_add(&s->known, s->key.p, s->key.len);
	if (s->number == DICT_NONE)
		return 0;
	if (s->number > s->groups.len / sizeof(new)) {
		values = buf_grow(&s->values, size);
		if (!values || buf_add(&s->groups, &new, sizeof(new)))
			return 0;
		memset(values, 0, size);
	}
	s->last = s->key;
	s->key = last;
	return s->number;
}

static int find_type(struct sums *s, uint64_t row)
{
	const struct parquet_table *t = &s->r->t;
	uint32_t name = t->values[SAMPLE_TYPE]->codes[row], unit = t->values[UNIT]->codes[row];

	if (s->type < s->r->ntypes && name == s->type_codes[0] && unit == s->type_codes[1])
		return 0;
	s->type_codes[0] = name;
	s->type_codes[1] = unit;
	s->type = parquet_profile_type(s->r, row);
	return s->type < s->r->ntypes
		       ? 0
		       : reading_fail(s->r, "a sample's type is not one of its types");
}

/* Adds the row's value; a row of the first type also counts its samples. */
static int add_row(struct sums *s, uint64_t row)
{
	struct reading *r = s->r;
	int err = find_type(s, row);
	uint32_t number = err ? 0 : find_group(s, row);
	int64_t *values;

	if (!number)
		return err ? err : -ENOMEM;
	values = (int64_t *)(void *)s->values.p + (uint64_t)(number - 1) * r->ntypes;
	saturate_add(&values[s->type], parquet_number(&r->t, VALUE, row));
	if (s->type == r->first_type && s->type != r->count_type && r->count_type < r->ntypes)
		saturate_add(&values[r->count_type], parquet_number(&r->t, COUNT, row));
	if (s->type == r->first_type) /* a sample has a row for each type */
		((struct group *)(void *)s->groups.p)[number - 1].n++;
	return 0;
}

static int add_rows(struct sums *s)
{
	int err = 0;

	for (uint64_t i = 0; !err && i < s->r->t.rows; i++) {
		if (s->rows->parts[i] == PARQUET_NO_WINDOW)
			continue;
		err = add_row(s, i);
		if (!err && i % 1024 == 0 &&
		    s->known.bytes + s->values.cap + s->groups.cap > MAX_BYTES) {
			s->r->window->why = "its sums take more memory than may be used";
			err = -EFBIG;
		}
	}
	return err;
}

/* ---- samples ---- */

/* Own labels come first: of two labels with the same key the first is kept. */
static int set_labels(const struct sums *s, uint64_t row, struct buf *to)
{
	const struct parquet_table *t = &s->r->t;
	uint64_t i = s->keys ? parquet_begin(t, KEY, row) : 0,
		 end = s->keys ? t->values[KEY]->ends[row] : 0;

	buf_reset(to);
	for (uint32_t k = 0; k < s->n && s->columns[k] < OWN; k++) {
		struct fusee_label l = {.key = fusee_text(parquet_own_labels[s->columns[k]]),
					.str = parquet_text(t, s->columns[k], row)};

		if (l.str.len)
			buf_add(to, &l, sizeof(l));
	}
	for (; i < end; i++) {
		struct fusee_label l = {.key = parquet_text(t, KEY, i),
					.str = parquet_text(t, VALUE_OF_KEY, i)};

		if (s->keys[t->values[KEY]->codes[i]])
			buf_add(to, &l, sizeof(l));
	}
	return to->error;
}

static uint32_t number_of(const struct sums *s, uint32_t column, uint64_t row)
{
	return s->r->t.values[column] ? (uint32_t)parquet_number(&s->r->t, column, row) : 0;
}

/* A sample that the selector excludes is not added. If an expression cannot decide, the sample is
 * added, and the filter reports it. */
static int add_group(struct sums *s, uint32_t i, struct buf *labels)
{
	const struct group *g = (const struct group *)(const void *)s->groups.p + i;
	const int64_t *values = (const int64_t *)(const void *)s->values.p +
				(uint64_t)i * s->r->ntypes;
	struct fusee_sample sample = {.pid = number_of(s, PID, g->row),
				      .tid = number_of(s, TID, g->row)};
	struct fusee_profile p = {0};
	int err = set_labels(s, g->row, labels);

	if (err)
		return err;
	sample.nlabels = (uint32_t)(labels->len / sizeof(struct fusee_label));
	p.labels = (struct fusee_table){labels->p, sample.nlabels, sizeof(struct fusee_label)};
	if (!selector_matches(s->r->request->selector, &p, &sample))
		return 0;
	s->r->window->nadded += g->n;
	builder_part(s->r->b, s->rows->parts[g->row]);
	return builder_sample(s->r->b, s->rows->stacks ? s->rows->stacks[g->row] : 0,
			      (const struct fusee_label *)(const void *)labels->p, sample.nlabels,
			      sample.pid, sample.tid, values);
}

int parquet_sums_add(struct reading *r, const struct parquet_group_rows *rows)
{
	struct sums s = {.r = r, .rows = rows, .type = r->ntypes};
	struct buf labels = {0};
	int err = dict_init(&s.known);

	if (!err)
		err = load_columns(&s);
	if (!err)
		err = add_rows(&s);
	for (uint32_t i = 0; !err && i < s.groups.len / sizeof(struct group); i++)
		err = add_group(&s, i, &labels);
	dict_fini(&s.known);
	free(s.keys);
	buf_fini(&s.groups);
	buf_fini(&s.values);
	buf_fini(&s.key);
	buf_fini(&s.last);
	buf_fini(&labels);
	return err;
}
