/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of a profile that is encoded: most of its bytes. */
#include <errno.h>
#include <string.h>

#include "pprof/internal/encoder.h"
#include "pprof/internal/wire.h"

#define FIELD_TIMES 1000

/* encoder_text() with a cache by address, for texts that are not moved: samples of a target repeat
 * the same labels. */
static uint32_t lasting_text(struct encoder *e, const char *p, uint64_t len)
{
	struct known_text *k = &e->known[((uintptr_t)p >> 3 ^ (uintptr_t)p >> 12 ^ (uintptr_t)p) &
					 (ENCODER_KNOWN - 1)];

	if (k->p != p || k->len != len)
		*k = (struct known_text){p, len, encoder_text(e, p, len)};
	return k->id;
}

/* Writes a Label, unless readers would drop it or the sample has a label of this key. */
static void put_label(struct encoder *e, const struct fusee_label *l)
{
	uint32_t key = lasting_text(e, l->key.p, l->key.len), *seen;
	size_t n = e->keys.len / sizeof(*seen);

	if (!key || (l->str.p ? !l->str.len : !l->num && !l->unit.len))
		return;
	seen = (uint32_t *)(void *)e->keys.p;
	for (size_t i = 0; i < n; i++)
		if (seen[i] == key)
			return;
	if (buf_add(&e->keys, &key, sizeof(key)))
		return encoder_fail(e, -ENOMEM);
	buf_reset(&e->sub);
	put_uint(&e->sub, 1, key);
	if (l->str.p) {
		put_uint(&e->sub, 2, lasting_text(e, l->str.p, l->str.len));
	} else {
		put_uint(&e->sub, 3, (uint64_t)l->num);
		put_uint(&e->sub, 4, lasting_text(e, l->unit.p, l->unit.len));
	}
	put_bytes(&e->msg, 3, e->sub.p, e->sub.len);
}

static void put_number_label(struct encoder *e, const char *key, uint32_t n)
{
	struct fusee_label l = {.key = {key, strlen(key)}, .num = n};

	put_label(e, &l);
}

/* Writes ids as a Label, in hexadecimal; zeros are none. */
static void put_id(struct encoder *e, const char *key, const uint64_t *words, uint32_t n)
{
	char hex[33];
	uint32_t id;

	if (!hex_of(words, n, hex))
		return;
	buf_reset(&e->sub);
	id = lasting_text(e, key, strlen(key));
	put_uint(&e->sub, 1, id);
	put_uint(&e->sub, 2, encoder_text(e, hex, 16ull * n));
	put_bytes(&e->msg, 3, e->sub.p, e->sub.len);
	if (buf_add(&e->keys, &id, sizeof(id)))
		encoder_fail(e, -ENOMEM);
}

static void make_labels(struct encoder *e, const struct fusee_sample *s)
{
	const struct fusee_profile *p = e->p;

	buf_reset(&e->keys);
	put_id(e, "trace_id", s->trace_id, 2);
	put_id(e, "span_id", &s->span_id, 1);
	for (uint32_t i = 0; i < s->nlabels; i++)
		put_label(e, FUSEE_AT(struct fusee_label, p->labels, s->first_label + i));
	put_number_label(e, "pid", s->pid);
	put_number_label(e, "tid", s->tid);
	for (uint32_t i = 0; i < p->resource.n; i++)
		put_label(e, FUSEE_AT(struct fusee_label, p->resource, i));
}

/* Adds the labels to the message: those of a sample with the same are copied from there. Returns
 * where this sample's are to be noted; NULL: nowhere. */
static struct labels_written *put_labels(struct encoder *e, const struct fusee_sample *s)
{
	uint32_t hash = ((s->first_label * 31 + s->pid) * 31 + s->tid) * 0x9e3779b1u;
	struct labels_written *w = &e->labelled[hash >> 16 & (ENCODER_LABELLED - 1)];
	size_t from = e->msg.len;

	if (s->trace_id[0] || s->trace_id[1] || s->span_id) {
		make_labels(e, s);
		return NULL;
	}
	if (w->len && w->first_label == s->first_label && w->nlabels == s->nlabels &&
	    w->pid == s->pid && w->tid == s->tid) {
		buf_add(&e->msg, encoder_message(e)->p + w->at, w->len);
		return NULL;
	}
	make_labels(e, s);
	*w = (struct labels_written){s->first_label, s->nlabels, s->pid, s->tid,
				     .len = e->msg.len - from};
	return w;
}

/* As profile.proto has them. */
static void put_times(struct encoder *e, const struct fusee_sample *s)
{
	uint64_t before = e->p->start_ns;

	buf_reset(&e->sub);
	for (uint32_t k = 0; k < s->ntimes; k++) {
		uint64_t t = *FUSEE_AT(uint64_t, e->p->times, s->first_time + k), d = t - before;

		put_varint(&e->sub, d << 1 ^ (d >> 63 ? UINT64_MAX : 0));
		before = t;
	}
	put_bytes(&e->msg, FIELD_TIMES, e->sub.p, e->sub.len);
}

static void put_stack(struct encoder *e, const struct fusee_stack *stack)
{
	const struct fusee_table locations = e->p->stack_locations;
	char *to;

	buf_reset(&e->sub);
	to = buf_grow(&e->sub, (stack->n + (size_t)1) * VARINT32_MOST);
	if (!to)
		return;
	if (!stack->n)
		to = varint_at(to, encoder_location(e, 0));
	for (uint32_t k = 0; k < stack->n; k++)
		to = varint_at(to, encoder_location(e, *FUSEE_AT(uint32_t, locations,
								 (uint64_t)stack->first + k)));
	e->sub.len = (size_t)(to - e->sub.p);
	put_bytes(&e->msg, 1, e->sub.p, e->sub.len);
}

void encoder_sample(struct encoder *e, uint32_t i)
{
	const struct fusee_profile *p = e->p;
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, i);
	struct labels_written *w;

	put_stack(e, FUSEE_AT(struct fusee_stack, p->stacks, s->stack));
	buf_reset(&e->sub);
	for (uint32_t k = 0; k < p->types.n; k++)
		put_varint(&e->sub,
			   (uint64_t)*FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n + k));
	put_bytes(&e->msg, 2, e->sub.p, e->sub.len);
	if (s->ntimes)
		put_times(e, s);
	w = put_labels(e, s);
	encoder_emit(e, 2);
	if (w && e->error)
		w->len = 0;
	else if (w)
		w->at = encoder_message(e)->len - w->len; /* a sample ends with its labels */
}
