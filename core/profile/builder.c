/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/utf8.h"
#include "profile/internal/builder_state.h"

/* Further labels of a sample are dropped. A sample has each key once. */
#define MAX_LABELS 76 /* the 64 of a target, and those of a sample */

/* So much is believed of what a file seems to have. */
#define MAX_EXPECTED (4u << 20)

int builder_new(struct builder **ret)
{
	struct builder *b = calloc(1, sizeof(*b));
	const uint32_t zero = 0;

	if (!b)
		return -ENOMEM;
	if (dict_init_in(&b->strings, &b->arena) || dict_init_in(&b->functions, &b->arena) ||
	    dict_init_in(&b->mappings, &b->arena) || dict_init_in(&b->locations, &b->arena) ||
	    dict_init_in(&b->label_sets, &b->arena) || builder_stacks_init(b) ||
	    builder_samples_init(b) || buf_add(&b->mapping_flags, &zero, sizeof(zero))) {
		builder_free(b);
		return -ENOMEM;
	}
	b->profile.size = sizeof(b->profile);
	*ret = b;
	return 0;
}

void builder_free(struct builder *b)
{
	if (!b)
		return;
	if (b->held.release)
		b->held.release(b->held.arg);
	arena_fini(&b->arena);
	buf_fini(&b->mapping_flags);
	buf_fini(&b->values);
	buf_fini(&b->types);
	buf_fini(&b->losses);
	buf_fini(&b->comments.strings);
	buf_fini(&b->resource);
	buf_fini(&b->comments.has);
	buf_fini(&b->scratch);
	buf_fini(&b->times);
	free(b);
}

static uint32_t add(struct builder *b, struct dict *d, const void *key, size_t len)
{
	uint32_t id = dict_add(d, key, len);

	return id == DICT_NONE ? builder_fail(b, -ENOMEM) : id;
}

uint32_t builder_string(struct builder *b, const char *p, uint64_t len)
{
	if (builder_is_closed(b))
		return BUILDER_NONE;
	if (!p || !len)
		return 0;
	if (utf8_valid(p, len))
		return add(b, &b->strings, p, len);
	buf_reset(&b->scratch);
	if (utf8_clean(&b->scratch, p, len))
		return builder_fail(b, -ENOMEM);
	return add(b, &b->strings, b->scratch.p, b->scratch.len);
}

uint32_t builder_cstr(struct builder *b, const char *s)
{
	return builder_string(b, s, s ? strlen(s) : 0);
}

/* The caller's index is wrong, or BUILDER_NONE of an earlier failure. */
static bool outside(const struct dict *d, uint32_t id)
{
	return id >= d->n;
}

uint32_t builder_function(struct builder *b, const struct fusee_function *f)
{
	static const struct fusee_function none;

	if (builder_is_closed(b))
		return BUILDER_NONE;
	if (outside(&b->strings, f->name) || outside(&b->strings, f->system_name) ||
	    outside(&b->strings, f->file))
		return builder_fail(b, -EINVAL);
	if (!memcmp(f, &none, sizeof(none)))
		return 0;
	return add(b, &b->functions, f, sizeof(*f));
}

uint32_t builder_mapping(struct builder *b, const struct fusee_mapping *m)
{
	struct mapping_key key = {m->path, m->build_id, m->start, m->limit, m->offset};
	static const struct mapping_key none;
	uint32_t id, *flags;

	if (builder_is_closed(b))
		return BUILDER_NONE;
	if (outside(&b->strings, m->path) || outside(&b->strings, m->build_id))
		return builder_fail(b, -EINVAL);
	if (!memcmp(&key, &none, sizeof(none)))
		return 0;
	id = add(b, &b->mappings, &key, sizeof(key));
	if (id == BUILDER_NONE)
		return id;
	if (b->mapping_flags.len / sizeof(*flags) > id)
		return id;
	flags = buf_grow(&b->mapping_flags, sizeof(*flags));
	if (!flags)
		return builder_fail(b, -ENOMEM);
	*flags = m->flags;
	return id;
}

void builder_mapping_flags(struct builder *b, uint32_t mapping, uint32_t set, uint32_t clear)
{
	uint32_t *flags = (uint32_t *)(void *)b->mapping_flags.p;

	if (builder_is_closed(b))
		return;
	if (!mapping || mapping >= b->mapping_flags.len / sizeof(*flags))
		builder_fail(b, -EINVAL);
	else
		flags[mapping] = (flags[mapping] | set) & ~clear;
}

uint32_t builder_location(struct builder *b, const struct fusee_location *l,
			  const struct fusee_line *lines, uint32_t n)
{
	static const struct fusee_location none;
	struct fusee_location key = *l;

	if (builder_is_closed(b))
		return BUILDER_NONE;
	key.first_line = 0;
	key.nlines = n;
	if (outside(&b->mappings, l->mapping) || outside(&b->strings, l->frame_type) ||
	    outside(&b->strings, l->language))
		return builder_fail(b, -EINVAL);
	for (uint32_t i = 0; i < n; i++)
		if (outside(&b->functions, lines[i].function))
			return builder_fail(b, -EINVAL);
	if (!memcmp(&key, &none, sizeof(none)))
		return 0;
	buf_reset(&b->scratch);
	buf_add(&b->scratch, &key, sizeof(key));
	if (buf_add(&b->scratch, lines, n * sizeof(*lines)))
		return builder_fail(b, -ENOMEM);
	return add(b, &b->locations, b->scratch.p, b->scratch.len);
}

uint32_t builder_stack(struct builder *b, const uint32_t *locations, uint32_t n)
{
	uint32_t id;

	if (builder_is_closed(b))
		return BUILDER_NONE;
	for (uint32_t i = 0; i < n; i++)
		if (outside(&b->locations, locations[i]))
			return builder_fail(b, -EINVAL);
	id = n ? builder_stacks_add(b, locations, n) : 0;
	return id == BUILDER_NONE ? builder_fail(b, -ENOMEM) : id;
}

uint32_t builder_type(struct builder *b, const char *type, const char *unit)
{
	struct fusee_value_type t = {builder_cstr(b, type), builder_cstr(b, unit)};

	if (builder_is_closed(b))
		return BUILDER_NONE;
	if (b->samples.n > 1)
		return builder_fail(b, -EINVAL);
	if (buf_add(&b->types, &t, sizeof(t)))
		return builder_fail(b, -ENOMEM);
	return b->ntypes++;
}

/* Sorts by key, so that the same labels in another order are the same sample. Of labels with the
 * same key the first is kept. */
static uint32_t put_label(struct label_key *sorted, uint32_t n, const struct label_key *l)
{
	uint32_t i = n;

	for (uint32_t k = 0; k < n; k++)
		if (sorted[k].key == l->key)
			return n;
	if (n == MAX_LABELS)
		return n;
	for (; i && sorted[i - 1].key > l->key; i--)
		sorted[i] = sorted[i - 1];
	sorted[i] = *l;
	return n + 1;
}

static uint32_t sort_labels(struct builder *b, const struct fusee_label *labels, uint32_t n,
			    struct label_key *sorted)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct fusee_label *l = &labels[i];
		struct label_key k = {.key = builder_string(b, l->key.p, l->key.len)};

		if (l->str.p) {
			k.is_str = LABEL_STR;
			k.str = builder_string(b, l->str.p, l->str.len);
			k.num = l->num == FUSEE_LABEL_OWN;
		} else {
			k.num = l->num;
			k.unit = builder_string(b, l->unit.p, l->unit.len);
		}
		if (k.key && !b->error)
			kept = put_label(sorted, kept, &k);
	}
	return kept;
}

uint32_t builder_labels(struct builder *b, const struct fusee_label *labels, uint32_t n)
{
	struct label_key sorted[MAX_LABELS];
	uint32_t kept;

	if (builder_is_closed(b))
		return BUILDER_NONE;
	kept = n ? sort_labels(b, labels, n, sorted) : 0;
	return kept ? add(b, &b->label_sets, sorted, kept * sizeof(*sorted)) : 0;
}

/* Adds values to the sample with this stack, labels, pid and tid. */
static int add_values(struct builder *b, const struct fusee_sample *key, const int64_t *values)
{
	size_t size = b->ntypes * sizeof(*values);
	uint32_t id = builder_samples_add(b, key);
	int64_t *v;

	if (id != BUILDER_NONE && b->values.len < id * size) {
		v = buf_grow(&b->values, size);
		if (v)
			memset(v, 0, size);
	}
	if (id == BUILDER_NONE || b->values.error) {
		builder_fail(b, -ENOMEM);
		return b->error;
	}
	v = (int64_t *)(void *)(b->values.p + (id - 1) * size);
	for (uint32_t i = 0; i < b->ntypes; i++)
		saturate_add(&v[i], values[i]);
	b->last = id;
	return 0;
}

void builder_expect(struct builder *b, uint64_t samples)
{
	b->stacks.expected = samples < MAX_EXPECTED ? (uint32_t)samples : MAX_EXPECTED;
}

/* May a sample be added? */
static bool sample_may_be(struct builder *b, uint32_t stack)
{
	if (!builder_is_closed(b) && (stack >= b->stacks.n || !b->ntypes))
		builder_fail(b, -EINVAL);
	return !b->error;
}

int builder_sample_of(struct builder *b, uint32_t stack, uint32_t labels, uint32_t pid,
		      uint32_t tid, const int64_t *values)
{
	const struct fusee_sample key = {
		.stack = stack,
		.first_label = labels,
		.pid = pid,
		.tid = tid,
		.trace_id = {b->samples.ids.trace_id[0], b->samples.ids.trace_id[1]},
		.span_id = b->samples.ids.span_id};

	if (!sample_may_be(b, stack))
		return b->error;
	if (outside(&b->label_sets, labels)) {
		builder_fail(b, -EINVAL);
		return b->error;
	}
	return add_values(b, &key, values);
}

int builder_sample(struct builder *b, uint32_t stack, const struct fusee_label *labels,
		   uint32_t nlabels, uint32_t pid, uint32_t tid, const int64_t *values)
{
	return builder_sample_of(b, stack, builder_labels(b, labels, nlabels), pid, tid, values);
}

int builder_sample_alike(struct builder *b, uint32_t stack, const int64_t *values)
{
	struct fusee_sample key = b->samples.at[b->last];

	if (!sample_may_be(b, stack))
		return b->error;
	key.stack = stack;
	return add_values(b, &key, values);
}

int builder_time(struct builder *b, uint64_t ns)
{
	const struct sample_time t = {.ns = ns, .sample = b->last};

	if (!builder_is_closed(b) && b->last && buf_add(&b->times, &t, sizeof(t)))
		builder_fail(b, -ENOMEM);
	return b->error;
}

void builder_ids(struct builder *b, const uint64_t trace_id[2], uint64_t span_id)
{
	b->samples.ids = (struct builder_ids){{trace_id[0], trace_id[1]}, span_id};
}

void builder_part(struct builder *b, uint32_t part)
{
	b->part = part;
	b->nparts = part < b->nparts ? b->nparts : part + 1;
}

/* Lists the string as a comment. Returns whether it was listed before. */
static bool list_comment(struct builder *b, uint32_t id)
{
	size_t n = b->comments.has.len;
	bool before;

	if (n <= id) {
		char *p = buf_grow(&b->comments.has, b->strings.n - n);

		if (!p) {
			builder_fail(b, -ENOMEM);
			return true;
		}
		memset(p, 0, b->strings.n - n);
	}
	before = b->comments.has.p[id];
	b->comments.has.p[id] = 1;
	return before;
}

void builder_comment(struct builder *b, const char *format, ...)
{
	char *text = NULL;
	uint32_t id;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!text) {
		builder_fail(b, -ENOMEM);
		return;
	}
	id = builder_cstr(b, text);
	if (!b->error && !list_comment(b, id) && buf_add(&b->comments.strings, &id, sizeof(id)))
		builder_fail(b, -ENOMEM);
	free(text);
}

void builder_loss(struct builder *b, enum loss_stage stage, const char *reason, int64_t n)
{
	struct loss l = {
		.reason = builder_cstr(b, reason), .stage = stage, .part = b->part, .n = n};
	struct loss *at = (struct loss *)(void *)b->losses.p;

	if (b->error)
		return;
	for (size_t i = 0; i < b->losses.len / sizeof(*at); i++) {
		if (at[i].reason == l.reason && at[i].stage == stage && at[i].part == l.part) {
			saturate_add(&at[i].n, n);
			return;
		}
	}
	if (buf_add(&b->losses, &l, sizeof(l)))
		builder_fail(b, -ENOMEM);
}

void builder_losses(struct builder *b, const struct loss_account *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		const struct loss_count *c = &a->counts[i];

		if (c->n && (c->stage == LOSS_TICK || c->stage == LOSS_STACK))
			builder_loss(b, c->stage, c->text, (int64_t)c->n);
	}
}

void builder_resource(struct builder *b, const char *key, const char *value)
{
	uint32_t k = builder_cstr(b, key), v = builder_cstr(b, value);
	struct fusee_label l, *at = (struct fusee_label *)(void *)b->resource.p;

	if (b->error)
		return;
	l = (struct fusee_label){.key = builder_text(b, k), .str = builder_text(b, v)};
	for (size_t i = 0; i < b->resource.len / sizeof(*at); i++) {
		if (at[i].key.p == l.key.p) {
			at[i] = l;
			return;
		}
	}
	if (buf_add(&b->resource, &l, sizeof(l)))
		builder_fail(b, -ENOMEM);
}

static uint64_t slots_bytes(const struct slots *s)
{
	return s->n * sizeof(*s->at);
}

static uint64_t dict_bytes(const struct dict *d)
{
	return d->bytes + d->chunk_free + d->cap * sizeof(*d->entries) + slots_bytes(&d->slots);
}

uint64_t builder_bytes(const struct builder *b)
{
	const struct builder_stacks *s = &b->stacks;

	return sizeof(*b) + dict_bytes(&b->strings) + dict_bytes(&b->functions) +
	       dict_bytes(&b->mappings) + dict_bytes(&b->locations) + dict_bytes(&b->label_sets) +
	       s->cap * sizeof(*s->at) + s->hashes_cap * sizeof(*s->hashes) +
	       s->samples_cap * sizeof(*s->samples) + s->locations_cap * sizeof(*s->locations) +
	       slots_bytes(&s->slots) + b->samples.more_cap * sizeof(*b->samples.more) +
	       b->samples.cap * sizeof(*b->samples.at) +
	       b->samples.parts_cap * sizeof(*b->samples.parts) + slots_bytes(&b->samples.slots) +
	       b->mapping_flags.cap + b->values.cap + b->types.cap + b->losses.cap +
	       b->comments.strings.cap + b->resource.cap + b->comments.has.cap + b->scratch.cap +
	       b->times.cap + b->table_bytes + b->held.bytes;
}

void builder_hold(struct builder *b, void (*release)(void *arg), void *arg, uint64_t bytes)
{
	b->held = (struct held){release, arg, bytes};
}

struct fusee_profile *builder_profile(struct builder *b)
{
	return &b->profile;
}
