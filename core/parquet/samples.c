/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is read in three steps, of which each can exclude all that remains: the bounds of its row
 * groups, in the footer; the columns of the selector's labels, and the numbers of stacks; the
 * stacks and values of the remaining samples. The filter selects in any case.
 */
#include <errno.h>
#include <stdlib.h>

#include "parquet/internal/match.h"
#include "parquet/internal/reading.h"

#define MAX_LABELS 128             /* of the map of a row, as the sink writes */
#define MAX_BYTES (512ull << 20)   /* of the builder */
#define KEEP (16ull << 20)         /* of columns while the stacks are read */
#define MAX_NUMBERS (256ull << 20) /* bytes of the numbers of stacks */

static const struct parquet_column columns[COLUMNS] = {
	[HOST] = {"host", NULL, FUSEE_PARQUET_TEXT},
	[SERVICE] = {"service", NULL, FUSEE_PARQUET_TEXT},
	[PROCESS] = {"process", NULL, FUSEE_PARQUET_TEXT},
	[NAMESPACE] = {"namespace", NULL, FUSEE_PARQUET_TEXT},
	[POD] = {"pod", NULL, FUSEE_PARQUET_TEXT},
	[CONTAINER] = {"container", NULL, FUSEE_PARQUET_TEXT},
	[THREAD] = {"thread", NULL, FUSEE_PARQUET_TEXT},
	[TRACE_ID] = {"trace_id", NULL, FUSEE_PARQUET_TEXT, true},
	[SPAN_ID] = {"span_id", NULL, FUSEE_PARQUET_TEXT, true},
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
static const uint32_t sample_columns[] = {
	HOST, SERVICE,      PROCESS,     NAMESPACE, POD, CONTAINER, THREAD, TRACE_ID, SPAN_ID,
	KEY,  VALUE_OF_KEY, SAMPLE_TYPE, UNIT,      PID, TID,       VALUE,  COUNT};
static const uint32_t part_columns[] = {TS, DURATION, PROFILE, PERIOD};
#define PART_COLUMNS (sizeof(part_columns) / sizeof(*part_columns))
static const uint32_t key_column[] = {KEY}, stack_column[] = {STACK}, profile_column[] = {PROFILE};
#define SAMPLE_COLUMNS (sizeof(sample_columns) / sizeof(*sample_columns))

/* ---- bounds ---- */

static int several(struct reading *r)
{
	return reading_fail(r, "it has samples of several windows");
}

/* The bounds of a long text are shortened and therefore differ: then the text is read from the
 * column. */
static int read_kind(struct reading *r, uint32_t group, const struct fusee_parquet_bounds *b)
{
	struct fusee_str kind = b->min_text;
	int err;

	if (!str_equal(b->min_text, b->max_text)) {
		parquet_table_group(&r->t, group);
		err = reading_load(r, profile_column, 1);
		if (err)
			return err;
		if (r->t.values[PROFILE]->ndistinct != 1)
			return several(r);
		kind = r->t.values[PROFILE]->texts[0];
	}
	if (!group)
		return buf_add(&r->kind, kind.p, kind.len);
	return str_equal((struct fusee_str){r->kind.p, r->kind.len}, kind) ? 0 : several(r);
}

static int read_same_number(struct reading *r, uint32_t group, const struct fusee_parquet_bounds *b,
			    int64_t *same)
{
	if (!group)
		*same = b->min;
	return b->min == *same && b->max == b->min ? 0 : several(r);
}

/* What all samples of a file that was not merged have in common. */
static int read_same(struct reading *r)
{
	struct parquet_part p = {.nfiles = 1};
	int64_t *const same[COLUMNS] = {
		[TS] = &p.ts, [DURATION] = &p.duration, [PERIOD] = &p.period};
	struct fusee_parquet_bounds b;
	int err = 0;

	for (uint32_t c = TS; c < COLUMNS; c++)
		for (uint32_t g = 0; !err && g < r->t.ngroups; g++) {
			if (!parquet_table_bounds(&r->t, g, c, &b))
				return reading_fail(r, "its row groups have no statistics");
			err = c == PROFILE ? read_kind(r, g, &b)
					   : read_same_number(r, g, &b, same[c]);
		}
	if (err)
		return err;
	if (p.ts < 0 || p.ts > INT64_MAX / 1000 || p.duration < 0)
		return reading_fail(r, "its window has no time");
	p.kind = (struct fusee_str){r->kind.p, r->kind.len};
	return parquet_merged_add(&r->merged, &p);
}

/* Whether the filters of the ids have those that the selector requires. 1, 0, or an error. */
static int may_have_ids(struct reading *r, uint32_t group)
{
	const char *key, *text;
	int may = 1;

	for (uint32_t i = 0; may == 1 && selector_requires(r->request->selector, i, &key, &text);
	     i++)
		for (uint32_t c = TRACE_ID; may == 1 && c <= SPAN_ID; c++)
			if (!strcmp(key, parquet_own_labels[c]))
				may = parquet_table_may_have(&r->t, group, c, fusee_text(text),
							     &r->window->why);
	return may;
}

/* 1: rows of the group may be selected. If the lower bound is "", some row lacks the column's
 * label, which may then be in the map as a number, unless it is an id: such bounds exclude nothing.
 */
static int may_match_bounds(struct reading *r, uint32_t group)
{
	struct fusee_parquet_bounds b;
	int may = 1;

	if (parquet_table_bounds(&r->t, group, TS, &b))
		may = parquet_merged_selects(&r->merged, b.min, b.max);
	for (uint32_t c = 0; may == 1 && c < OWN; c++) {

		if (parquet_table_bounds(&r->t, group, c, &b) &&
		    (b.min_text.len || c == TRACE_ID || c == SPAN_ID))
			may = selector_may_match_between(r->request->selector,
							 fusee_text(parquet_own_labels[c]),
							 b.min_text, b.max_text);
	}
	return may == 1 ? may_have_ids(r, group) : may;
}

/* ---- rows ---- */

static bool is_in_map(const struct reading *r, struct fusee_str key)
{
	const struct fusee_parquet_values *v = r->t.values[KEY];

	for (uint32_t i = 0; i < v->ndistinct; i++)
		if (str_equal(v->texts[i], key))
			return true;
	return false;
}

/* met[code]: whether the label's value may be selected. 0 or an error. A value that an expression
 * cannot decide within its limits may be selected: the filter then reports it. */
static int match_values(struct reading *r, uint32_t column, uint8_t *met)
{
	struct fusee_label l = {.key = fusee_text(parquet_own_labels[column])};
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

/* Rows of a file that lacks the column have the label in the map, if any has it. */
static int exclude_all(struct reading *r, uint32_t column, uint8_t *takes)
{
	const struct fusee_label none = {.key = fusee_text(parquet_own_labels[column]),
					 .str = fusee_text("")};
	int may = is_in_map(r, none.key) ? 1 : selector_may_match(r->request->selector, &none, 1);

	if (!may)
		memset(takes, 0, r->t.rows);
	return may < 0 && may != -EAGAIN ? may : 0;
}

static int exclude(struct reading *r, uint32_t column, uint8_t *takes)
{
	const struct fusee_parquet_values *v;
	uint8_t *met;
	int err = reading_load(r, key_column, 1);

	if (!err)
		err = reading_load(r, &column, 1);
	if (err)
		return err;
	v = r->t.values[column];
	if (!v)
		return exclude_all(r, column, takes);
	met = malloc(v->ndistinct + 1ull);
	err = met ? match_values(r, column, met) : -ENOMEM;
	for (uint64_t i = 0; !err && i < r->t.rows; i++)
		takes[i] &= met[v->codes[i]];
	free(met);
	return err;
}

static int require_stack(struct reading *r, int64_t number)
{
	if (parquet_stacks_bytes(&r->stacks) >= MAX_NUMBERS) {
		r->window->why = "it has more stacks than may be read";
		return -EFBIG;
	}
	return parquet_stacks_require(&r->stacks, number);
}

/* Requires the stacks of the rows that are taken; each number of a dictionary once. */
static int require_stacks(struct reading *r, const struct parquet_group_rows *g)
{
	int err = reading_load(r, stack_column, 1);
	const struct fusee_parquet_values *v = r->t.values[STACK];
	uint8_t *used = err ? NULL : calloc(v->ndistinct + 1ull, 1);

	if (!used)
		return err ? err : -ENOMEM;
	for (uint64_t i = 0; i < r->t.rows; i++)
		if (g->parts[i] != PARQUET_NO_WINDOW)
			used[v->codes ? v->codes[i] : i] = 1;
	for (uint64_t i = 1; !v->codes && i < r->t.rows; i++) /* they ascend */
		used[i - 1] &= !used[i] || v->numbers[i] != v->numbers[i - 1];
	for (uint32_t i = 0; !err && i < v->ndistinct; i++)
		if (used[i])
			err = require_stack(r, v->numbers[i]);
	free(used);
	return err;
}

static struct parquet_part part_at(const struct reading *r, uint64_t row)
{
	return (struct parquet_part){.ts = parquet_number(&r->t, TS, row),
				     .duration = parquet_number(&r->t, DURATION, row),
				     .period = parquet_number(&r->t, PERIOD, row),
				     .kind = parquet_text(&r->t, PROFILE, row)};
}

/* hints: by code of the time, a part that begins at it; NULL: times have no codes. */
static int find_part(struct reading *r, uint64_t row, uint32_t *hints, uint32_t *part)
{
	struct parquet_part p = part_at(r, row);
	uint32_t *hint = hints ? &hints[r->t.values[TS]->codes[row]] : NULL;

	if (hint)
		r->merged.last = *hint;
	*part = parquet_merged_find(&r->merged, &p);
	if (*part == PARQUET_NO_WINDOW)
		return reading_fail(r, "a sample's window is not one of its windows");
	if (hint)
		*hint = *part;
	if (!r->merged.parts[*part].selected)
		*part = PARQUET_NO_WINDOW;
	return 0;
}

/* The parts of the rows that are taken. */
static int find_parts(struct reading *r, const uint8_t *takes, struct parquet_group_rows *g)
{
	int err = r->is_merged ? reading_load(r, part_columns, PART_COLUMNS) : 0;
	uint32_t *hints = NULL;

	if (!err && r->is_merged && r->t.values[TS]->codes) {
		hints = calloc(r->t.values[TS]->ndistinct + 1ull, sizeof(*hints));
		err = hints ? 0 : -ENOMEM;
	}
	for (uint64_t i = 0; !err && i < r->t.rows; i++) {
		g->parts[i] = takes[i] ? 0 : PARQUET_NO_WINDOW;
		if (takes[i] && r->is_merged)
			err = find_part(r, i, hints, &g->parts[i]);
		g->n += g->parts[i] != PARQUET_NO_WINDOW;
	}
	free(hints);
	return err;
}

static int keep_rows(struct reading *r, const uint8_t *takes, struct parquet_group_rows *g)
{
	int err;

	g->parts = malloc(r->t.rows * sizeof(*g->parts));
	if (!g->parts)
		return -ENOMEM;
	err = find_parts(r, takes, g);
	r->ntaken += g->n;
	if (!err && g->n && !r->request->no_stacks)
		err = require_stacks(r, g);
	return err;
}

/* Which rows of a group remain, by their labels and times. */
static int select_rows(struct reading *r, uint32_t group)
{
	int may = may_match_bounds(r, group), err = 0;
	uint8_t *takes;

	if (may <= 0 && may != -EAGAIN)
		return may;
	parquet_table_group(&r->t, group);
	takes = malloc(r->t.rows);
	if (!takes)
		return -ENOMEM;
	memset(takes, 1, r->t.rows);
	for (uint32_t c = 0; !err && c < OWN; c++)
		if (selector_has(r->request->selector, fusee_text(parquet_own_labels[c])))
			err = exclude(r, c, takes);
	if (!err && memchr(takes, 1, r->t.rows))
		err = keep_rows(r, takes, &r->groups[group]);
	free(takes);
	return err;
}

/* ---- samples ---- */

/* A sample has one row for each type except the number of samples, which each of these rows has. */
static int set_values(struct reading *r, uint64_t row, int64_t *values)
{
	uint32_t type = parquet_profile_type(r, row);

	if (type == r->ntypes)
		return reading_fail(r, "a sample's type is not one of its types");
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
			labels[n++] = (struct fusee_label){.key = fusee_text(parquet_own_labels[c]),
							   .str = value};
	}
	for (; i < end && n < OWN + MAX_LABELS; i++)
		labels[n++] = (struct fusee_label){.key = parquet_text(&r->t, KEY, i),
						   .str = parquet_text(&r->t, VALUE_OF_KEY, i)};
	return n;
}

static int add_sample(struct reading *r, const struct parquet_group_rows *g, uint64_t row)
{
	struct fusee_label labels[OWN + MAX_LABELS];
	int64_t values[MAX_TYPES];
	uint32_t n = set_labels(r, row, labels), stack = g->stacks ? g->stacks[row] : 0;
	struct fusee_sample sample = {.nlabels = n,
				      .pid = (uint32_t)parquet_number(&r->t, PID, row),
				      .tid = (uint32_t)parquet_number(&r->t, TID, row)};
	const struct fusee_profile p = {.labels = {labels, n, sizeof(*labels)}};
	int err = set_values(r, row, values);

	if (err)
		return err;
	/* without stacks different samples become equal, so rows that are added up are counted */
	if (r->request->no_stacks || r->matches) {
		if (!selector_matches(r->request->selector, &p, &sample))
			return 0;
		r->window->nadded++;
	}
	builder_part(r->b, g->parts[row]);
	return builder_sample(r->b, stack, labels, n, sample.pid, sample.tid, values);
}

/* The index in the builder of a row's stack; the column has no codes, and mostly the previous row's
 * stack. */
static uint32_t stack_of(const struct reading *r, const struct parquet_group_rows *g, uint64_t row)
{
	const int64_t *numbers = r->t.values[STACK]->numbers;

	if (row && numbers[row] == numbers[row - 1] && g->parts[row - 1] != PARQUET_NO_WINDOW)
		return g->stacks[row - 1];
	return parquet_stacks_at(&r->stacks, numbers[row]);
}

/* Rows whose stacks have none of the functions are omitted from now on. */
static int find_stacks(struct reading *r, struct parquet_group_rows *g)
{
	int err = reading_load(r, stack_column, 1);
	const struct fusee_parquet_values *v = r->t.values[STACK];
	uint32_t *of = err ? NULL : calloc(v->ndistinct + 1ull, sizeof(*of));

	g->stacks = of ? malloc(r->t.rows * sizeof(*g->stacks)) : NULL;
	if (!g->stacks) {
		free(of);
		return err ? err : -ENOMEM;
	}
	for (uint32_t i = 0; v->codes && i < v->ndistinct; i++)
		of[i] = parquet_stacks_at(&r->stacks, v->numbers[i]);
	for (uint64_t i = 0; i < r->t.rows; i++) {
		if (g->parts[i] == PARQUET_NO_WINDOW)
			continue;
		g->stacks[i] = v->codes ? of[v->codes[i]] : stack_of(r, g, i);
		if (r->matches && !g->stacks[i]) {
			g->parts[i] = PARQUET_NO_WINDOW;
			g->n--;
		}
	}
	free(of);
	return 0;
}

static int check_memory(struct reading *r)
{
	if (builder_bytes(r->b) <= MAX_BYTES)
		return 0;
	r->window->why = "its samples take more memory than may be used";
	return -EFBIG;
}

static int add_samples(struct reading *r, const struct parquet_group_rows *g)
{
	int err = reading_load(r, sample_columns, SAMPLE_COLUMNS);

	if (!err && memcmp(r->t.values[KEY]->ends, r->t.values[VALUE_OF_KEY]->ends,
			   r->t.rows * sizeof(uint64_t)))
		err = reading_fail(r, "its labels are no map");
	for (uint64_t i = 0; !err && i < r->t.rows; i++) {
		if (g->parts[i] == PARQUET_NO_WINDOW)
			continue;
		err = add_sample(r, g, i);
		if (!err && i % 1024 == 0)
			err = check_memory(r);
	}
	return err;
}

static int add_rows(struct reading *r, uint32_t group)
{
	struct parquet_group_rows *g = &r->groups[group];
	int err = 0;

	if (!g->n)
		return 0;
	parquet_table_group(&r->t, group);
	if (!r->request->no_stacks)
		err = find_stacks(r, g);
	if (!err && g->n)
		err = r->request->keys ? parquet_sums_add(r, g) : add_samples(r, g);
	free(g->stacks);
	g->stacks = NULL;
	return err ? err : check_memory(r);
}

/* ---- a window ---- */

static int read_stacks(struct reading *r)
{
	struct parquet_window *w = r->window;

	w->failed = "stacks";
	parquet_table_unload(&r->t, KEEP);
	r->matches = parquet_match_can(r->request->functions);
	return r->matches ? parquet_match_read(&r->stacks, r->request->functions, r->b, w->files,
					       w->path, &w->bytes, &w->why)
			  : parquet_stacks_read(&r->stacks, r->b, w->files, w->path, &w->bytes,
						&w->why);
}

static int build(struct reading *r)
{
	int err = parquet_profile_begin(r);

	if (!err && !r->request->no_stacks)
		err = read_stacks(r);
	if (!err)
		r->window->failed = "samples";
	for (uint32_t g = 0; !err && g < r->t.ngroups; g++)
		err = add_rows(r, g);
	for (uint32_t p = 0; !err && p < r->merged.n; p++)
		err = parquet_profile_losses(r, p);
	return err;
}

/* Whether a window is in the range, and has the type that the selector names. 1, 0, or an error. */
static int is_requested(struct reading *r)
{
	const char *type = selector_type(r->request->selector);
	int any = parquet_merged_choose(&r->merged, r->request->from_ns, r->request->to_ns,
					&r->window->in_range, &r->window->why);

	for (uint32_t i = 0; type && !str_equal(r->types[i][0], fusee_text(type)); i++)
		if (i + 1 == r->ntypes)
			return 0;
	return any;
}

static int read_window(struct reading *r)
{
	int err = parquet_profile_types(r);

	if (!err)
		err = parquet_merged_read(&r->merged, r->t.file, r->window->excluded,
					  &r->window->why);
	r->is_merged = err == 1;
	if (!err)
		err = read_same(r);
	if (err >= 0)
		err = is_requested(r);
	if (err <= 0)
		return err;
	r->groups = calloc(r->t.ngroups + 1ull, sizeof(*r->groups));
	if (!r->groups)
		return -ENOMEM;
	err = 0;
	for (uint32_t g = 0; !err && g < r->t.ngroups; g++)
		err = select_rows(r, g);
	if (err || !r->ntaken)
		return err;
	err = build(r);
	return err ? err : 1;
}

int parquet_samples_read(struct parquet_window *w, const struct store_request *request,
			 int (*each)(void *, const struct fusee_profile *), void *arg)
{
	struct reading r = {.window = w, .request = request};
	int err;

	w->failed = "samples";
	w->why = "";
	err = parquet_table_open(&r.t, w->files, FILES_SAMPLES, w->path, columns, COLUMNS, &w->why);
	if (!err && r.t.ngroups)
		err = read_window(&r);
	if (err == 1)
		err = parquet_profile_deliver(&r, each, arg);
	if (err == 1 && !w->nwindows) /* no sample has a selected function */
		err = 0;
	w->nadded -= w->nadded < w->nsamples ? w->nadded : w->nsamples;
	w->bytes += r.t.bytes;
	for (uint32_t g = 0; r.groups && g < r.t.ngroups; g++)
		free(r.groups[g].parts);
	free(r.groups);
	free(r.places);
	parquet_merged_fini(&r.merged);
	parquet_table_close(&r.t);
	parquet_stacks_fini(&r.stacks);
	buf_fini(&r.kind);
	builder_free(r.b);
	return err;
}
