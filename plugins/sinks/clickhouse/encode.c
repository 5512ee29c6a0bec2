/* SPDX-License-Identifier: Apache-2.0 */
#include "encode.h"

/* A scalar of a row; the column's shape says which. */
union value {
	int64_t number;
	struct fusee_str text;
};

struct row {
	union value values[FIELDS]; /* by field */
	uint64_t ns;                /* its time */
	const uint8_t *id;
	struct fusee_table list; /* its labels or frames */
	struct fusee_str (*text_of)(const void *item, uint32_t field);
	int64_t (*number_of)(const void *item, uint32_t field);
};

/* ---- one value ---- */

static uint64_t ticks(uint64_t ns, uint32_t digits)
{
	for (; digits < 9; digits++)
		ns /= 10;
	return ns;
}

static void put_map(struct fusee_bytes *b, struct fusee_table labels)
{
	fusee_bytes_varint(b, labels.n);
	FUSEE_FOR_EACH (struct fusee_rows_label, l, labels) {
		body_text(b, l->key);
		body_text(b, l->value);
	}
}

static void put_list(struct fusee_bytes *b, const struct column *c, const struct row *row)
{
	fusee_bytes_varint(b, row->list.n);
	for (uint32_t i = 0; i < row->list.n && !b->error; i++) {
		const void *item = FUSEE_AT(char, row->list, i);

		if (c->nullable)
			fusee_bytes_number(b, 0, 1);
		if (c->shape == SHAPE_TEXTS)
			body_text(b, row->text_of(item, c->field));
		else
			fusee_bytes_number(b, (uint64_t)row->number_of(item, c->field), c->size);
	}
}

static void put_scalar(struct fusee_bytes *b, const struct column *c, const struct row *row)
{
	const union value *v = &row->values[c->field];
	uint64_t seconds = row->ns / FUSEE_SECOND;
	char id[FUSEE_UUID];

	if (c->nullable)
		fusee_bytes_number(b, 0, 1);
	switch ((enum shape)c->shape) {
	case SHAPE_INT:
		fusee_bytes_number(b, (uint64_t)v->number, c->size);
		break;
	case SHAPE_SECONDS:
		fusee_bytes_number(b, seconds < UINT32_MAX ? seconds : UINT32_MAX, 4);
		break;
	case SHAPE_TICKS:
		fusee_bytes_number(b, ticks(row->ns, c->size), 8);
		break;
	case SHAPE_UUID:
		body_uuid(b, row->id);
		break;
	case SHAPE_UUID_TEXT:
		fusee_uuid(id, row->id);
		body_text(b, fusee_text(id));
		break;
	default:
		body_text(b, v->text);
		break;
	}
}

static int put_row(struct fusee_bytes *b, const struct layout *l, const struct row *row)
{
	for (uint32_t i = 0; i < l->n && !b->error; i++) {
		const struct column *c = &l->at[i];

		if (c->shape == SHAPE_MAP)
			put_map(b, row->list);
		else if (c->shape == SHAPE_TEXTS || c->shape == SHAPE_INTS)
			put_list(b, c, row);
		else
			put_scalar(b, c, row);
	}
	return b->error;
}

/* ---- samples ---- */

static struct fusee_str label_text(const void *item, uint32_t field)
{
	const struct fusee_rows_label *l = item;

	return field == LABEL_KEY ? l->key : l->value;
}

int encode_sample(struct fusee_bytes *b, const struct layout *l, const struct fusee_profile *p,
		  const struct fusee_rows_sample *s, uint64_t number)
{
	static const uint8_t own[FUSEE_ROWS_OWN] = {
		[FUSEE_ROWS_HOST] = HOST,       [FUSEE_ROWS_SERVICE] = SERVICE,
		[FUSEE_ROWS_PROCESS] = PROCESS, [FUSEE_ROWS_NAMESPACE] = NAMESPACE,
		[FUSEE_ROWS_POD] = POD,         [FUSEE_ROWS_CONTAINER] = CONTAINER,
		[FUSEE_ROWS_THREAD] = THREAD,   [FUSEE_ROWS_TRACE] = TRACE,
		[FUSEE_ROWS_SPAN] = SPAN};
	struct row row = {.ns = p->start_ns, .id = p->id, .list = s->labels, .text_of = label_text};

	row.values[DURATION].number = (int64_t)p->duration_ns;
	row.values[PROFILE].text = *FUSEE_AT(struct fusee_str, p->strings, p->kind);
	row.values[SAMPLE_TYPE].text = s->sample_type;
	row.values[UNIT].text = s->unit;
	row.values[PERIOD].number = p->period;
	for (uint32_t k = 0; k < FUSEE_ROWS_OWN; k++)
		row.values[own[k]].text = s->own[k];
	row.values[PID].number = s->pid;
	row.values[TID].number = s->tid;
	row.values[VALUE].number = s->value;
	row.values[COUNT].number = s->count;
	row.values[STACK].text = s->stack;
	row.values[STACK_ID].number = s->stack_id;
	row.values[ROW].number = (int64_t)number;
	return put_row(b, l, &row);
}

/* ---- stacks ---- */

static struct fusee_str frame_text(const void *item, uint32_t field)
{
	const struct fusee_rows_frame *f = item;

	switch (field) {
	case F_FUNCTION:
		return f->function;
	case F_FILE:
		return f->file;
	case F_MAPPING:
		return f->mapping;
	case F_BUILD_ID:
		return f->build_id;
	default:
		return f->type;
	}
}

static int64_t frame_number(const void *item, uint32_t field)
{
	const struct fusee_rows_frame *f = item;

	return field == F_LINE ? f->line : field == F_ADDRESS ? f->address : f->inlined;
}

int encode_stack(struct fusee_bytes *b, const struct layout *l, const struct fusee_profile *p,
		 const struct fusee_rows_stack *s)
{
	struct row row = {.ns = p->start_ns,
			  .id = p->id,
			  .list = s->frames,
			  .text_of = frame_text,
			  .number_of = frame_number};

	row.values[S_ID].number = s->id;
	row.values[S_STACK].text = s->stack;
	return put_row(b, l, &row);
}
