/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the columns, and the value of a row for each column. */
#include "rows.h"

#include "frame.h"

#define TEXT_COLUMN(column)                                          \
	{                                                            \
		column, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_FLAT, NULL \
	}
#define INT64_COLUMN(column)                                          \
	{                                                             \
		column, FUSEE_PARQUET_INT64, FUSEE_PARQUET_FLAT, NULL \
	}
#define INT32_COLUMN(column)                                          \
	{                                                             \
		column, FUSEE_PARQUET_INT32, FUSEE_PARQUET_FLAT, NULL \
	}

enum {
	TS,
	DURATION,
	PROFILE,
	SAMPLE_TYPE,
	UNIT,
	PERIOD,
	HOST,
	SERVICE,
	PROCESS,
	NAMESPACE,
	POD,
	CONTAINER,
	PID,
	TID,
	THREAD,
	TRACE,
	SPAN,
	LABEL_KEY,
	LABEL_VALUE,
	VALUE,
	COUNT,
	STACK,
	STACK_ID,
};

static const struct fusee_parquet_column samples_columns[] = {
	[TS] = {"ts", FUSEE_PARQUET_TIME, FUSEE_PARQUET_FLAT, NULL},
	[DURATION] = INT64_COLUMN("duration_ns"),
	[PROFILE] = TEXT_COLUMN("profile"),
	[SAMPLE_TYPE] = TEXT_COLUMN("sample_type"),
	[UNIT] = TEXT_COLUMN("unit"),
	[PERIOD] = INT64_COLUMN("period"),
	[HOST] = TEXT_COLUMN("host"),
	[SERVICE] = TEXT_COLUMN("service"),
	[PROCESS] = TEXT_COLUMN("process"),
	[NAMESPACE] = TEXT_COLUMN("namespace"),
	[POD] = TEXT_COLUMN("pod"),
	[CONTAINER] = TEXT_COLUMN("container"),
	[PID] = INT32_COLUMN("pid"),
	[TID] = INT32_COLUMN("tid"),
	[THREAD] = TEXT_COLUMN("thread"),
	[TRACE] = TEXT_COLUMN("trace_id"),
	[SPAN] = TEXT_COLUMN("span_id"),
	[LABEL_KEY] = {NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_MAP, "labels"},
	[LABEL_VALUE] = {NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_MAP, "labels"},
	[VALUE] = INT64_COLUMN("value"),
	[COUNT] = INT64_COLUMN("count"),
	[STACK] = TEXT_COLUMN("stack"),
	[STACK_ID] = INT64_COLUMN("stack_id"),
};
/* Ids have a value for each request, so bounds exclude no row group. */
static const uint32_t samples_filtered[] = {TRACE, SPAN};
static const uint32_t samples_sort[] = {PROFILE, SERVICE, TS, STACK};
static const uint32_t samples_merged_sort[] = {PROFILE, STACK, STACK_ID, SERVICE, POD, TS};

enum { S_ID, S_FRAMES };

static const struct fusee_parquet_column stacks_columns[] = {
	[S_ID] = INT64_COLUMN("stack_id"),
	[S_FRAMES] = {NULL, FUSEE_PARQUET_TEXT, FUSEE_PARQUET_LIST, "frames"},
};
static const uint32_t stacks_sort[] = {S_FRAMES, S_ID};
static const uint32_t stacks_merged_sort[] = {S_ID};

const struct fusee_table rows_samples = FUSEE_TABLE(samples_columns);
const struct fusee_table rows_filtered[2] = {FUSEE_TABLE(samples_filtered)};
const struct fusee_table rows_samples_sort = FUSEE_TABLE(samples_sort);
const struct fusee_table rows_samples_merged_sort = FUSEE_TABLE(samples_merged_sort);
const struct fusee_table rows_stacks = FUSEE_TABLE(stacks_columns);
const struct fusee_table rows_stacks_sort = FUSEE_TABLE(stacks_sort);
const struct fusee_table rows_stacks_merged_sort = FUSEE_TABLE(stacks_merged_sort);
const uint32_t rows_window[ROWS_WINDOW] = {[ROWS_TS] = TS,
					   [ROWS_DURATION] = DURATION,
					   [ROWS_PERIOD] = PERIOD,
					   [ROWS_PROFILE] = PROFILE};
const uint32_t rows_counted[ROWS_COUNTED] = {TS,      DURATION,  PERIOD, PROFILE,
					     SERVICE, LABEL_KEY, STACK,  STACK_ID};
const uint32_t rows_stack_id = S_ID, rows_stack_frames = S_FRAMES;
const uint32_t rows_service = SERVICE, rows_label_key = LABEL_KEY, rows_sample_stack = STACK,
	       rows_sample_stack_id = STACK_ID;

/* Columns of the labels that have one, by enum fusee_rows_own. */
static const uint32_t own_columns[FUSEE_ROWS_OWN] = {
	[FUSEE_ROWS_HOST] = HOST,       [FUSEE_ROWS_SERVICE] = SERVICE,
	[FUSEE_ROWS_PROCESS] = PROCESS, [FUSEE_ROWS_NAMESPACE] = NAMESPACE,
	[FUSEE_ROWS_POD] = POD,         [FUSEE_ROWS_CONTAINER] = CONTAINER,
	[FUSEE_ROWS_THREAD] = THREAD,   [FUSEE_ROWS_TRACE] = TRACE,
	[FUSEE_ROWS_SPAN] = SPAN,
};

static struct fusee_str text_of(const struct fusee_profile *p, uint32_t i)
{
	return *FUSEE_AT(struct fusee_str, p->strings, i);
}

/* ---- samples ---- */

static int put_sample(struct fusee_parquet *w, const struct fusee_profile *p,
		      const struct fusee_rows_sample *row)
{
	fusee_parquet_int(w, TS, (int64_t)(p->start_ns / 1000));
	fusee_parquet_int(w, DURATION, (int64_t)p->duration_ns);
	fusee_parquet_text(w, PROFILE, text_of(p, p->kind));
	fusee_parquet_text(w, SAMPLE_TYPE, row->sample_type);
	fusee_parquet_text(w, UNIT, row->unit);
	fusee_parquet_int(w, PERIOD, p->period);
	for (uint32_t k = 0; k < FUSEE_ROWS_OWN; k++)
		fusee_parquet_text(w, own_columns[k], row->own[k]);
	FUSEE_FOR_EACH (struct fusee_rows_label, l, row->labels) {
		fusee_parquet_text(w, LABEL_KEY, l->key);
		fusee_parquet_text(w, LABEL_VALUE, l->value);
	}
	fusee_parquet_int(w, PID, (int32_t)row->pid);
	fusee_parquet_int(w, TID, (int32_t)row->tid);
	fusee_parquet_int(w, VALUE, row->value);
	fusee_parquet_int(w, COUNT, row->count);
	fusee_parquet_text(w, STACK, row->stack);
	fusee_parquet_int(w, STACK_ID, row->stack_id);
	return fusee_parquet_row(w);
}

static int put_samples(struct fusee_rows *rows, const struct fusee_profile *p,
		       struct fusee_parquet *w)
{
	struct fusee_rows_sample row;
	int err = 0;

	for (uint64_t i = 0; !err && i < fusee_rows_nsamples(rows); i++) {
		err = fusee_rows_fill_sample(rows, i, &row);
		if (!err)
			err = put_sample(w, p, &row);
	}
	return err;
}

/* ---- stacks ---- */

static int put_stack(struct fusee_parquet *w, const struct fusee_rows_stack *row,
		     struct fusee_bytes *text, uint64_t *truncated)
{
	fusee_parquet_int(w, S_ID, row->id);
	FUSEE_FOR_EACH (struct fusee_rows_frame, f, row->frames) {
		*truncated += !frame_put(text, f);
		if (text->error)
			return text->error;
		fusee_parquet_text(w, S_FRAMES, fusee_bytes_str(text));
	}
	return fusee_parquet_row(w);
}

static int put_stacks(struct fusee_rows *rows, struct fusee_parquet *w, uint64_t *truncated)
{
	struct fusee_bytes text = {0};
	struct fusee_rows_stack row;
	int err = 0;

	for (uint64_t i = 0; !err && i < fusee_rows_nstacks(rows); i++) {
		err = fusee_rows_fill_stack(rows, i, &row);
		if (!err)
			err = put_stack(w, &row, &text, truncated);
	}
	fusee_bytes_fini(&text);
	return err;
}

/* ---- both ---- */

/* Name and unit of each type, as rows have them, and which of the types is shown. */
static void put_types(const struct fusee_profile *p, struct fusee_parquet *w)
{
	char key[48];

	for (uint32_t i = 0; i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);
		struct fusee_str name = fusee_text_shortened(text_of(p, t->type),
							     FUSEE_PARQUET_MAX_TEXT),
				 unit = fusee_text_shortened(text_of(p, t->unit),
							     FUSEE_PARQUET_MAX_TEXT);

		snprintf(key, sizeof(key), "fusee.type.%u", i);
		fusee_parquet_metadata(w, fusee_text(key), name);
		snprintf(key, sizeof(key), "fusee.type.%u.unit", i);
		fusee_parquet_metadata(w, fusee_text(key), unit);
		if (i == p->default_type)
			fusee_parquet_metadata(w, fusee_text("fusee.default_type"), name);
	}
}

/* Writes the reasons of losses and the creator into the file's metadata. */
static void put_metadata(const struct fusee_profile *p, struct fusee_parquet *w, const char *schema)
{
	char key[256], number[32];

	fusee_parquet_metadata(w, fusee_text("fusee.schema"), fusee_text(schema));
	FUSEE_FOR_EACH (struct fusee_label, l, p->losses) {
		struct fusee_str stage = fusee_text_shortened(l->str, 31),
				 reason = fusee_text_shortened(l->key, 199);

		snprintf(key, sizeof(key), "fusee.%.*s.%.*s", (int)stage.len,
			 stage.len ? stage.p : "", (int)reason.len, reason.len ? reason.p : "");
		snprintf(number, sizeof(number), "%lld", (long long)l->num);
		fusee_parquet_metadata(w, fusee_text(key), fusee_text(number));
	}
}

int rows_write(const struct fusee_profile *p, struct fusee_parquet *samples,
	       struct fusee_parquet *stacks, struct fusee_rows_shortened *shortened)
{
	static const struct fusee_rows_options options = {.max_text = FUSEE_PARQUET_MAX_TEXT,
							  .max_frames = FUSEE_PARQUET_MAX_VALUES,
							  .ids = 1};
	struct fusee_rows *rows;
	uint64_t truncated = 0;
	int err = fusee_rows_open(&rows, p, &options);

	if (!err)
		err = put_stacks(rows, stacks, &truncated);
	if (!err)
		err = put_samples(rows, p, samples);
	if (rows)
		*shortened = fusee_rows_count_shortened(rows);
	shortened->labels += truncated;
	fusee_rows_close(rows);
	put_metadata(p, samples, "samples/3");
	put_types(p, samples);
	put_metadata(p, stacks, "stacks/2");
	if (!err)
		err = fusee_parquet_finish(stacks);
	return err ? err : fusee_parquet_finish(samples);
}
