/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is read in three steps, of which each can be the last: bounds of its row groups, in the
 * footer; the columns of labels that the selector is about, and numbers of stacks; the stacks of
 * samples that remain, and the values. The filter selects in any case.
 */
#include "query/parquet_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "profile/pprof_loss.h"
#include "query/parquet_stacks.h"
#include "query/parquet_table.h"

#define MAX_TYPES 64
#define MAX_LABELS 128             /* of the map of a row, as the sink writes */
#define MAX_BYTES (512ull << 20)   /* of the builder */
#define KEEP (16ull << 20)         /* of columns while the stacks are read */
#define MAX_NUMBERS (256ull << 20) /* bytes of the numbers of stacks */

/* The columns of labels are first. */
enum {
	HOST,
	SERVICE,
	PROCESS,
	NAMESPACE,
	POD,
	CONTAINER,
	THREAD,
	OWN, /* their number */
	KEY = OWN,
	VALUE_OF_KEY,
	SAMPLE_TYPE,
	UNIT,
	PID,
	TID,
	VALUE,
	COUNT,
	STACK,
	/* the same in all rows: their bounds are read */
	TS,
	DURATION,
	PROFILE,
	PERIOD,
	COLUMNS,
};

static const struct parquet_column columns[COLUMNS] = {
	[HOST] = {"host", NULL, FUSEE_PARQUET_TEXT},
	[SERVICE] = {"service", NULL, FUSEE_PARQUET_TEXT},
	[PROCESS] = {"process", NULL, FUSEE_PARQUET_TEXT},
	[NAMESPACE] = {"namespace", NULL, FUSEE_PARQUET_TEXT},
	[POD] = {"pod", NULL, FUSEE_PARQUET_TEXT},
	[CONTAINER] = {"container", NULL, FUSEE_PARQUET_TEXT},
	[THREAD] = {"thread", NULL, FUSEE_PARQUET_TEXT},
	[KEY] = {"key", "labels", FUSEE_PARQUET_TEXT},
	[VALUE_OF_KEY] = {"value", "labels", FUSEE_PARQUET_TEXT},
	[SAMPLE_TYPE] = {"sample_type", NULL, FUSEE_PARQUET_TEXT},
	[UNIT] = {"unit", NULL, FUSEE_PARQUET_TEXT},
	[PID] = {"pid", NULL, FUSEE_PARQUET_INT32},
	[TID] = {"tid", NULL, FUSEE_PARQUET_INT32},
	[VALUE] = {"value", NULL, FUSEE_PARQUET_INT64},
	[COUNT] = {"count", NULL, FUSEE_PARQUET_INT64},
	[STACK] = {"stack_id", NULL, FUSEE_PARQUET_INT64},
	[TS] = {"ts", NULL, FUSEE_PARQUET_TIME},
	[DURATION] = {"duration_ns", NULL, FUSEE_PARQUET_INT64},
	[PROFILE] = {"profile", NULL, FUSEE_PARQUET_TEXT},
	[PERIOD] = {"period", NULL, FUSEE_PARQUET_INT64},
};
static const uint32_t sample_columns[] = {HOST,      SERVICE, PROCESS, NAMESPACE,    POD,
					  CONTAINER, THREAD,  KEY,     VALUE_OF_KEY, SAMPLE_TYPE,
					  UNIT,      PID,     TID,     VALUE,        COUNT};
static const uint32_t key_column[] = {KEY}, stack_column[] = {STACK}, profile_column[] = {PROFILE};
#define SAMPLE_COLUMNS (sizeof(sample_columns) / sizeof(*sample_columns))

/* Labels that are columns of their own. */
static const char *const own_labels[OWN] = {
	[HOST] = "host",       [SERVICE] = "service_name",
	[PROCESS] = "process", [NAMESPACE] = "namespace",
	[POD] = "pod",         [CONTAINER] = "container",
	[THREAD] = "thread",
};

struct reading {
	struct parquet_window *window;
	const struct store_request *request;
	struct parquet_table t;
	struct parquet_stacks stacks;
	struct builder *b;
	struct fusee_str types[MAX_TYPES][2];    /* name and unit, in the file */
	uint32_t ntypes, count_type, first_type; /* count_type: ntypes if there is none */
	uint8_t **takes; /* by row group: whether a row is taken, NULL: none is */
	uint64_t ntaken;
	struct buf kind;       /* what PROFILE says */
	int64_t same[COLUMNS]; /* from TS on */
};

static int fail(struct reading *r, const char *why)
{
	r->window->why = why;
	return -EINVAL;
}

static struct fusee_str string(const char *s)
{
	return (struct fusee_str){s, strlen(s)};
}

static bool is_same(struct fusee_str a, struct fusee_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

/* ---- bounds ---- */

static int several(struct reading *r)
{
	return fail(r, "it has samples of several windows");
}

static int load(struct reading *r, const uint32_t *which, uint64_t n)
{
	return parquet_table_load(&r->t, which, (uint32_t)n, &r->window->why);
}

/* Bounds of a long text are shortened, and then not equal: the text is in the column. */
static int read_kind(struct reading *r, uint32_t group, const struct fusee_parquet_bounds *b)
{
	struct fusee_str kind = b->min_text;
	int err;

	if (!is_same(b->min_text, b->max_text)) {
		parquet_table_group(&r->t, group);
		err = load(r, profile_column, 1);
		if (err)
			return err;
		if (r->t.values[PROFILE]->ndistinct != 1)
			return several(r);
		kind = r->t.values[PROFILE]->texts[0];
	}
	if (!group)
		return buf_add(&r->kind, kind.p, kind.len);
	return is_same((struct fusee_str){r->kind.p, r->kind.len}, kind) ? 0 : several(r);
}

static int read_same_number(struct reading *r, uint32_t group, uint32_t column,
			    const struct fusee_parquet_bounds *b)
{
	if (!group)
		r->same[column] = b->min;
	return b->min == r->same[column] && b->max == b->min ? 0 : several(r);
}

/* A file has one window: what all its samples have in common. */
static int read_same(struct reading *r)
{
	struct fusee_parquet_bounds b;
	int err = 0;

	for (uint32_t c = TS; c < COLUMNS; c++)
		for (uint32_t g = 0; !err && g < r->t.ngroups; g++) {
			if (!parquet_table_bounds(&r->t, g, c, &b))
				return fail(r, "its row groups have no statistics");
			err = c == PROFILE ? read_kind(r, g, &b) : read_same_number(r, g, c, &b);
		}
	if (err)
		return err;
	if (r->same[TS] < 0 || r->same[TS] > INT64_MAX / 1000 || r->same[DURATION] < 0)
		return fail(r, "its window has no time");
	return 0;
}

/* 1: rows of the group may be selected. A label that is absent may be in the map after all, as a
 * number: texts that begin with "" tell nothing. */
static int may_match_bounds(struct reading *r, uint32_t group)
{
	int may = 1;

	for (uint32_t c = 0; may == 1 && c < OWN; c++) {
		struct fusee_parquet_bounds b;

		if (parquet_table_bounds(&r->t, group, c, &b) && b.min_text.len)
			may = selector_may_match_between(r->request->selector,
							 string(own_labels[c]), b.min_text,
							 b.max_text);
	}
	return may;
}

/* ---- rows ---- */

static bool is_in_map(const struct reading *r, struct fusee_str key)
{
	const struct fusee_parquet_values *v = r->t.values[KEY];

	for (uint32_t i = 0; i < v->ndistinct; i++)
		if (is_same(v->texts[i], key))
			return true;
	return false;
}

/* met[code]: whether the label's value may be selected. 0 or an error. What an expression cannot
 * decide within its limits may be: the filter decides in any case, with a sentence about it. */
static int match_values(struct reading *r, uint32_t column, uint8_t *met)
{
	struct fusee_label l = {.key = string(own_labels[column])};
	const struct fusee_parquet_values *v = r->t.values[column];

	for (uint32_t i = 0; i < v->ndistinct; i++) {
		int may = 1;

		l.str = v->texts[i];
		if (l.str.len || !is_in_map(r, l.key))
			may = selector_may_match(r->request->selector, &l, 1);
		if (may == -EAGAIN) {
			memset(met + i, 1, v->ndistinct - i);
			return 0;
		}
		if (may < 0)
			return may;
		met[i] = (uint8_t)may;
	}
	return 0;
}

static int exclude(struct reading *r, uint32_t column, uint8_t *takes)
{
	const struct fusee_parquet_values *v;
	uint8_t *met;
	int err = load(r, key_column, 1);

	if (!err)
		err = load(r, &column, 1);
	if (err)
		return err;
	v = r->t.values[column];
	met = malloc(v->ndistinct + 1ull);
	err = met ? match_values(r, column, met) : -ENOMEM;
	for (uint64_t i = 0; !err && i < r->t.rows; i++)
		takes[i] &= met[v->codes[i]];
	free(met);
	return err;
}

static int require_stacks(struct reading *r, const uint8_t *takes)
{
	int err = load(r, stack_column, 1);

	for (uint64_t i = 0; !err && i < r->t.rows; i++) {
		if (takes[i])
			err = parquet_stacks_require(&r->stacks, parquet_number(&r->t, STACK, i));
		if (!err && i % 1024 == 0 && parquet_stacks_bytes(&r->stacks) >= MAX_NUMBERS) {
			r->window->why = "it has more stacks than may be read";
			err = -EFBIG;
		}
	}
	return err;
}

/* Which rows of a group remain, by their labels. */
static int select_rows(struct reading *r, uint32_t group)
{
	uint8_t *takes;
	uint64_t before = r->ntaken;
	int may = may_match_bounds(r, group), err = 0;

	if (may <= 0 && may != -EAGAIN)
		return may;
	parquet_table_group(&r->t, group);
	takes = malloc(r->t.rows);
	if (!takes)
		return -ENOMEM;
	memset(takes, 1, r->t.rows);
	for (uint32_t c = 0; !err && c < OWN; c++)
		if (selector_has(r->request->selector, string(own_labels[c])))
			err = exclude(r, c, takes);
	for (uint64_t i = 0; i < r->t.rows; i++)
		r->ntaken += takes[i];
	if (!err && r->ntaken > before && !r->request->no_stacks)
		err = require_stacks(r, takes);
	if (!err && r->ntaken > before)
		r->takes[group] = takes;
	else
		free(takes);
	return err;
}

/* ---- samples ---- */

static uint32_t find_type(const struct reading *r, uint64_t row)
{
	struct fusee_str name = parquet_text(&r->t, SAMPLE_TYPE, row),
			 unit = parquet_text(&r->t, UNIT, row);
	uint32_t i = 0;

	while (i < r->ntypes && (!is_same(r->types[i][0], name) || !is_same(r->types[i][1], unit)))
		i++;
	return i;
}

/* A sample has a row for each type but the number of samples, which each of them has. */
static int set_values(struct reading *r, uint64_t row, int64_t *values)
{
	uint32_t type = find_type(r, row);

	if (type == r->ntypes)
		return fail(r, "a sample's type is not one of its types");
	memset(values, 0, r->ntypes * sizeof(*values));
	values[type] = parquet_number(&r->t, VALUE, row);
	if (type == r->first_type && type != r->count_type && r->count_type < r->ntypes)
		values[r->count_type] = parquet_number(&r->t, COUNT, row);
	return 0;
}

static uint32_t set_labels(const struct reading *r, uint64_t row, struct fusee_label *labels)
{
	uint64_t i = parquet_begin(&r->t, KEY, row), end = r->t.values[KEY]->ends[row];
	uint32_t n = 0;

	for (uint32_t c = 0; c < OWN; c++) {
		struct fusee_str value = parquet_text(&r->t, c, row);

		if (value.len)
			labels[n++] = (struct fusee_label){.key = string(own_labels[c]),
							   .str = value};
	}
	for (; i < end && n < OWN + MAX_LABELS; i++)
		labels[n++] = (struct fusee_label){.key = parquet_text(&r->t, KEY, i),
						   .str = parquet_text(&r->t, VALUE_OF_KEY, i)};
	return n;
}

static int add_sample(struct reading *r, uint64_t row)
{
	struct fusee_label labels[OWN + MAX_LABELS];
	int64_t values[MAX_TYPES];
	uint32_t n = set_labels(r, row, labels), stack = 0;
	int err = set_values(r, row, values);

	if (err)
		return err;
	if (!r->request->no_stacks)
		stack = parquet_stacks_at(&r->stacks, parquet_number(&r->t, STACK, row));
	return builder_sample(r->b, stack, labels, n, (uint32_t)parquet_number(&r->t, PID, row),
			      (uint32_t)parquet_number(&r->t, TID, row), values);
}

static int add_rows(struct reading *r, uint32_t group)
{
	int err;

	if (!r->takes[group])
		return 0;
	parquet_table_group(&r->t, group);
	err = load(r, sample_columns, SAMPLE_COLUMNS);
	if (!err && !r->request->no_stacks)
		err = load(r, stack_column, 1);
	if (!err && memcmp(r->t.values[KEY]->ends, r->t.values[VALUE_OF_KEY]->ends,
			   r->t.rows * sizeof(uint64_t)))
		err = fail(r, "its labels are no map");
	for (uint64_t i = 0; !err && i < r->t.rows; i++) {
		if (r->takes[group][i])
			err = add_sample(r, i);
		if (!err && i % 1024 == 0 && builder_bytes(r->b) > MAX_BYTES) {
			r->window->why = "its samples take more memory than may be used";
			err = -EFBIG;
		}
	}
	return err;
}

/* ---- the profile ---- */

/* "fusee.type.0" = "samples", "fusee.type.0.unit" = "count" .. */
static int read_types(struct reading *r)
{
	char key[48];

	for (; r->ntypes < MAX_TYPES; r->ntypes++) {
		const struct fusee_str *name, *unit;

		snprintf(key, sizeof(key), "fusee.type.%u", r->ntypes);
		name = fusee_parquet_pair(r->t.file, string(key));
		snprintf(key, sizeof(key), "fusee.type.%u.unit", r->ntypes);
		unit = fusee_parquet_pair(r->t.file, string(key));
		if (!name || !unit)
			break;
		r->types[r->ntypes][0] = *name;
		r->types[r->ntypes][1] = *unit;
	}
	r->count_type = 0;
	while (r->count_type < r->ntypes && !is_same(r->types[r->count_type][0], string("samples")))
		r->count_type++;
	r->first_type = r->count_type ? 0 : 1;
	return r->ntypes ? 0 : fail(r, "it does not say which types its samples have");
}

static uint32_t copy(struct builder *b, struct fusee_str s)
{
	return builder_string(b, s.p, s.len);
}

static uint32_t default_type(const struct reading *r)
{
	const struct fusee_str *pair = fusee_parquet_pair(r->t.file, string("fusee.default_type"));

	for (uint32_t i = 0; pair && i < r->ntypes; i++)
		if (is_same(r->types[i][0], *pair))
			return i;
	return r->ntypes - 1;
}

static int add_type(struct builder *b, const struct fusee_str type[2])
{
	char *name = strndup(type[0].p, type[0].len), *unit = strndup(type[1].p, type[1].len);
	int err = name && unit ? 0 : -ENOMEM;

	if (!err)
		builder_type(b, name, unit);
	free(name);
	free(unit);
	return err;
}

static int begin_profile(struct reading *r)
{
	struct fusee_profile *p;
	int err = builder_new(&r->b);

	for (uint32_t i = 0; !err && i < r->ntypes; i++)
		err = add_type(r->b, r->types[i]);
	if (err)
		return err;
	p = builder_profile(r->b);
	p->default_type = default_type(r);
	p->kind = copy(r->b, (struct fusee_str){r->kind.p, r->kind.len});
	p->period_type = copy(r->b, r->types[p->default_type][0]);
	p->period_unit = copy(r->b, r->types[p->default_type][1]);
	p->period = r->same[PERIOD];
	p->start_ns = (uint64_t)r->same[TS] * 1000;
	p->duration_ns = (uint64_t)r->same[DURATION];
	return 0;
}

/* "fusee.lost.ring full" = "12" */
static int add_loss(struct builder *b, const struct fusee_str pair[2], const char *stage)
{
	struct fusee_label l = {.str = string(stage)};
	char begin[32], number[32], *reason;
	int n = snprintf(begin, sizeof(begin), "fusee.%s.", stage);

	if (pair[0].len <= (uint64_t)n || memcmp(pair[0].p, begin, (size_t)n) ||
	    pair[1].len >= sizeof(number))
		return 0;
	reason = strndup(pair[0].p + n, pair[0].len - (uint64_t)n);
	if (!reason)
		return -ENOMEM;
	memcpy(number, pair[1].p, pair[1].len);
	number[pair[1].len] = '\0';
	l.key = string(reason);
	builder_loss(b, pprof_loss_stage(&l), reason, strtoll(number, NULL, 10));
	free(reason);
	return 0;
}

static int add_losses(struct reading *r)
{
	const struct fusee_str *pair;
	int err = 0;

	for (uint32_t i = 0; !err && (pair = fusee_parquet_pair_at(r->t.file, i)); i++) {
		err = add_loss(r->b, pair, loss_stage_text(LOSS_TICK));
		if (!err)
			err = add_loss(r->b, pair, loss_stage_text(LOSS_STACK));
	}
	return err;
}

/* ---- a window ---- */

static int build(struct reading *r, const struct fusee_profile **ret)
{
	struct parquet_window *w = r->window;
	int err = begin_profile(r);

	if (!err && !r->request->no_stacks) {
		w->failed = "stacks";
		parquet_table_unload(&r->t, KEEP);
		err = parquet_stacks_read(&r->stacks, r->b, w->stacks, w->path, &w->bytes, &w->why);
	}
	if (!err)
		w->failed = "samples";
	for (uint32_t g = 0; !err && g < r->t.ngroups; g++)
		err = add_rows(r, g);
	if (!err)
		err = add_losses(r);
	return err ? err : builder_finish(r->b, ret);
}

/* Whether the window is in the range, and has the type that the selector names. */
static bool is_requested(struct reading *r)
{
	uint64_t start = (uint64_t)r->same[TS] * 1000;
	const char *type = selector_type(r->request->selector);

	r->window->in_range = start >= r->request->from_ns && start < r->request->to_ns;
	for (uint32_t i = 0; type && !is_same(r->types[i][0], string(type)); i++)
		if (i + 1 == r->ntypes)
			return false;
	return r->window->in_range;
}

static int read_window(struct reading *r, const struct fusee_profile **ret)
{
	int err = read_types(r);

	if (!err)
		err = read_same(r);
	if (err || !is_requested(r))
		return err;
	r->takes = calloc(r->t.ngroups + 1ull, sizeof(*r->takes));
	if (!r->takes)
		return -ENOMEM;
	for (uint32_t g = 0; !err && g < r->t.ngroups; g++)
		err = select_rows(r, g);
	if (err || !r->ntaken)
		return err;
	err = build(r, ret);
	return err ? err : 1;
}

int parquet_samples_read(struct parquet_window *w, const struct store_request *request,
			 struct builder **b, const struct fusee_profile **ret)
{
	struct reading r = {.window = w, .request = request};
	int err;

	w->failed = "samples";
	w->why = "";
	err = parquet_table_open(&r.t, w->samples, w->path, columns, COLUMNS, &w->why);
	if (!err && r.t.ngroups)
		err = read_window(&r, ret);
	w->bytes += r.t.bytes;
	for (uint32_t g = 0; r.takes && g < r.t.ngroups; g++)
		free(r.takes[g]);
	free(r.takes);
	parquet_table_close(&r.t);
	parquet_stacks_fini(&r.stacks);
	buf_fini(&r.kind);
	if (err == 1)
		*b = r.b;
	else
		builder_free(r.b);
	return err;
}
