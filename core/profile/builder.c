/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/builder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/dict.h"
#include "base/utf8.h"

/* Labels of a sample beyond this are dropped: a key is there once, and nobody has as many keys. */
#define MAX_LABELS 64

enum { LABEL_STR = 1 };

/* What makes a sample, followed by its labels. No padding. */
struct sample_key {
	uint32_t stack, pid, tid, nlabels;
};

struct label_key {
	uint32_t key, str, unit, is_str;
	int64_t num;
};

/* What makes a mapping: its flags are kept beside it, they can change. */
struct mapping_key {
	uint32_t path, build_id;
	uint64_t start, limit, offset;
};

struct loss {
	uint32_t reason;
	enum loss_stage stage;
	int64_t n;
};

/* Dicts hold the tables while they grow: an id there is an index in the profile, 0 the empty one.
 */
struct builder {
	struct fusee_profile profile;
	int error;
	uint32_t ntypes;
	struct dict strings, functions, mappings, locations, stacks, samples;
	struct buf mapping_flags; /* uint32_t by mapping */
	struct buf values;        /* int64_t: ntypes a sample; sample ids begin at 1 */
	struct buf types, losses, comments, resource; /* value_type, loss, uint32_t, fusee_label */
	struct buf said;                              /* by string: is a comment */
	struct buf scratch;
	void *tables[11]; /* what builder_finish() made */
	uint32_t ntables;
	uint64_t table_bytes;
	bool finished;
};

int builder_new(struct builder **ret)
{
	struct builder *b = calloc(1, sizeof(*b));
	const uint32_t zero = 0;

	if (!b)
		return -ENOMEM;
	if (dict_init(&b->strings) || dict_init(&b->functions) || dict_init(&b->mappings) ||
	    dict_init(&b->locations) || dict_init(&b->stacks) || dict_init(&b->samples) ||
	    buf_add(&b->mapping_flags, &zero, sizeof(zero))) {
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
	dict_fini(&b->strings);
	dict_fini(&b->functions);
	dict_fini(&b->mappings);
	dict_fini(&b->locations);
	dict_fini(&b->stacks);
	dict_fini(&b->samples);
	buf_fini(&b->mapping_flags);
	buf_fini(&b->values);
	buf_fini(&b->types);
	buf_fini(&b->losses);
	buf_fini(&b->comments);
	buf_fini(&b->resource);
	buf_fini(&b->said);
	buf_fini(&b->scratch);
	for (uint32_t i = 0; i < b->ntables; i++)
		free(b->tables[i]);
	free(b);
}

static uint32_t fail(struct builder *b, int error)
{
	if (!b->error)
		b->error = error;
	return BUILDER_NONE;
}

/* The error is what it is for: a finished profile points into the dicts. */
static bool closed(struct builder *b)
{
	if (b->finished)
		fail(b, -EBUSY);
	return b->error;
}

static uint32_t add(struct builder *b, struct dict *d, const void *key, size_t len)
{
	uint32_t id = dict_add(d, key, len);

	return id == DICT_NONE ? fail(b, -ENOMEM) : id;
}

uint32_t builder_string(struct builder *b, const char *p, uint64_t len)
{
	if (closed(b))
		return BUILDER_NONE;
	if (!p || !len)
		return 0;
	if (utf8_valid(p, len))
		return add(b, &b->strings, p, len);
	buf_reset(&b->scratch);
	if (utf8_clean(&b->scratch, p, len))
		return fail(b, -ENOMEM);
	return add(b, &b->strings, b->scratch.p, b->scratch.len);
}

uint32_t builder_cstr(struct builder *b, const char *s)
{
	return builder_string(b, s, s ? strlen(s) : 0);
}

/* An index that the caller made up, or BUILDER_NONE of an earlier failure. */
static bool outside(const struct dict *d, uint32_t id)
{
	return id >= d->n;
}

uint32_t builder_function(struct builder *b, const struct fusee_function *f)
{
	static const struct fusee_function none;

	if (closed(b))
		return BUILDER_NONE;
	if (outside(&b->strings, f->name) || outside(&b->strings, f->system_name) ||
	    outside(&b->strings, f->file))
		return fail(b, -EINVAL);
	if (!memcmp(f, &none, sizeof(none)))
		return 0;
	return add(b, &b->functions, f, sizeof(*f));
}

uint32_t builder_mapping(struct builder *b, const struct fusee_mapping *m)
{
	struct mapping_key key = {m->path, m->build_id, m->start, m->limit, m->offset};
	static const struct mapping_key none;
	uint32_t id, *flags;

	if (closed(b))
		return BUILDER_NONE;
	if (outside(&b->strings, m->path) || outside(&b->strings, m->build_id))
		return fail(b, -EINVAL);
	if (!memcmp(&key, &none, sizeof(none)))
		return 0;
	id = add(b, &b->mappings, &key, sizeof(key));
	if (id == BUILDER_NONE)
		return id;
	if (b->mapping_flags.len / sizeof(*flags) > id)
		return id;
	flags = buf_grow(&b->mapping_flags, sizeof(*flags));
	if (!flags)
		return fail(b, -ENOMEM);
	*flags = m->flags;
	return id;
}

void builder_mapping_flags(struct builder *b, uint32_t mapping, uint32_t set, uint32_t clear)
{
	uint32_t *flags = (uint32_t *)(void *)b->mapping_flags.p;

	if (closed(b))
		return;
	if (!mapping || mapping >= b->mapping_flags.len / sizeof(*flags))
		fail(b, -EINVAL);
	else
		flags[mapping] = (flags[mapping] | set) & ~clear;
}

uint32_t builder_location(struct builder *b, const struct fusee_location *l,
			  const struct fusee_line *lines, uint32_t n)
{
	static const struct fusee_location none;
	struct fusee_location key = *l;

	if (closed(b))
		return BUILDER_NONE;
	key.first_line = 0;
	key.nlines = n;
	key.pad = 0;
	if (outside(&b->mappings, l->mapping) || outside(&b->strings, l->frame_type))
		return fail(b, -EINVAL);
	for (uint32_t i = 0; i < n; i++)
		if (outside(&b->functions, lines[i].function))
			return fail(b, -EINVAL);
	if (!memcmp(&key, &none, sizeof(none)))
		return 0;
	buf_reset(&b->scratch);
	buf_add(&b->scratch, &key, sizeof(key));
	if (buf_add(&b->scratch, lines, n * sizeof(*lines)))
		return fail(b, -ENOMEM);
	return add(b, &b->locations, b->scratch.p, b->scratch.len);
}

uint32_t builder_stack(struct builder *b, const uint32_t *locations, uint32_t n)
{
	if (closed(b))
		return BUILDER_NONE;
	for (uint32_t i = 0; i < n; i++)
		if (outside(&b->locations, locations[i]))
			return fail(b, -EINVAL);
	return n ? add(b, &b->stacks, locations, (size_t)n * sizeof(*locations)) : 0;
}

uint32_t builder_type(struct builder *b, const char *type, const char *unit)
{
	struct fusee_value_type t = {builder_cstr(b, type), builder_cstr(b, unit)};

	if (closed(b))
		return BUILDER_NONE;
	if (b->samples.n > 1)
		return fail(b, -EINVAL);
	if (buf_add(&b->types, &t, sizeof(t)))
		return fail(b, -ENOMEM);
	return b->ntypes++;
}

/* By key, so that the same labels in another order are the same sample; the first of a key stays.
 */
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
		} else {
			k.num = l->num;
			k.unit = builder_string(b, l->unit.p, l->unit.len);
		}
		if (k.key && !b->error)
			kept = put_label(sorted, kept, &k);
	}
	return kept;
}

static uint32_t sample_of(struct builder *b, uint32_t stack, const struct fusee_label *labels,
			  uint32_t nlabels, uint32_t pid, uint32_t tid)
{
	struct {
		struct sample_key key;
		struct label_key labels[MAX_LABELS];
	} k;
	uint32_t n = sort_labels(b, labels, nlabels, k.labels);

	k.key = (struct sample_key){stack, pid, tid, n};
	return add(b, &b->samples, &k, sizeof(k.key) + n * sizeof(*k.labels));
}

int builder_sample(struct builder *b, uint32_t stack, const struct fusee_label *labels,
		   uint32_t nlabels, uint32_t pid, uint32_t tid, const int64_t *values)
{
	size_t size = b->ntypes * sizeof(*values);
	uint32_t id;
	int64_t *v;

	if (closed(b))
		return b->error;
	if (outside(&b->stacks, stack) || !b->ntypes) {
		fail(b, -EINVAL);
		return b->error;
	}
	id = sample_of(b, stack, labels, nlabels, pid, tid);
	if (b->error)
		return b->error;
	if (b->values.len < id * size) {
		v = buf_grow(&b->values, size);
		if (!v) {
			fail(b, -ENOMEM);
			return b->error;
		}
		memset(v, 0, size);
	}
	v = (int64_t *)(void *)(b->values.p + (id - 1) * size);
	for (uint32_t i = 0; i < b->ntypes; i++)
		if (__builtin_add_overflow(v[i], values[i], &v[i]))
			v[i] = values[i] < 0 ? INT64_MIN : INT64_MAX;
	return 0;
}

/* Was this string a comment already? From now on it was. */
static bool said(struct builder *b, uint32_t id)
{
	size_t n = b->said.len;
	bool before;

	if (n <= id) {
		char *p = buf_grow(&b->said, b->strings.n - n);

		if (!p) {
			fail(b, -ENOMEM);
			return true;
		}
		memset(p, 0, b->strings.n - n);
	}
	before = b->said.p[id];
	b->said.p[id] = 1;
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
		fail(b, -ENOMEM);
		return;
	}
	id = builder_cstr(b, text);
	if (!b->error && !said(b, id) && buf_add(&b->comments, &id, sizeof(id)))
		fail(b, -ENOMEM);
	free(text);
}

void builder_loss(struct builder *b, enum loss_stage stage, const char *reason, int64_t n)
{
	struct loss l = {.reason = builder_cstr(b, reason), .stage = stage, .n = n};
	struct loss *at = (struct loss *)(void *)b->losses.p;

	if (b->error)
		return;
	for (size_t i = 0; i < b->losses.len / sizeof(*at); i++) {
		if (at[i].reason == l.reason && at[i].stage == stage) {
			if (__builtin_add_overflow(at[i].n, n, &at[i].n))
				at[i].n = n < 0 ? INT64_MIN : INT64_MAX;
			return;
		}
	}
	if (buf_add(&b->losses, &l, sizeof(l)))
		fail(b, -ENOMEM);
}

void builder_losses(struct builder *b, const struct loss_account *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		const struct loss_count *c = &a->counts[i];

		if (c->n && (c->stage == LOSS_TICK || c->stage == LOSS_STACK))
			builder_loss(b, c->stage, c->text, (int64_t)c->n);
	}
}

static struct fusee_str stage_text(enum loss_stage stage)
{
	const char *text = loss_stage_text(stage);

	return (struct fusee_str){text, strlen(text)};
}

static struct fusee_str text_of(const struct builder *b, uint32_t id)
{
	return (struct fusee_str){b->strings.entries[id].key, b->strings.entries[id].len};
}

void builder_resource(struct builder *b, const char *key, const char *value)
{
	uint32_t k = builder_cstr(b, key), v = builder_cstr(b, value);
	struct fusee_label l, *at = (struct fusee_label *)(void *)b->resource.p;

	if (b->error)
		return;
	l = (struct fusee_label){.key = text_of(b, k), .str = text_of(b, v)};
	for (size_t i = 0; i < b->resource.len / sizeof(*at); i++) {
		if (at[i].key.p == l.key.p) {
			at[i] = l;
			return;
		}
	}
	if (buf_add(&b->resource, &l, sizeof(l)))
		fail(b, -ENOMEM);
}

static uint64_t dict_bytes(const struct dict *d)
{
	return d->bytes + d->chunk_free + d->cap * sizeof(*d->entries) +
	       d->nslots * sizeof(*d->slots);
}

uint64_t builder_bytes(const struct builder *b)
{
	return sizeof(*b) + dict_bytes(&b->strings) + dict_bytes(&b->functions) +
	       dict_bytes(&b->mappings) + dict_bytes(&b->locations) + dict_bytes(&b->stacks) +
	       dict_bytes(&b->samples) + b->mapping_flags.cap + b->values.cap + b->types.cap +
	       b->losses.cap + b->comments.cap + b->resource.cap + b->said.cap + b->scratch.cap +
	       b->table_bytes;
}

struct fusee_profile *builder_profile(struct builder *b)
{
	return &b->profile;
}

/* ---- from dicts to tables ---- */

static void *table(struct builder *b, struct fusee_table *t, uint64_t n, uint32_t size)
{
	void *p = n < UINT32_MAX ? calloc(n ? n : 1, size) : NULL;

	if (!p) {
		fail(b, -ENOMEM);
		return NULL;
	}
	b->tables[b->ntables++] = p;
	b->table_bytes += n * size;
	*t = (struct fusee_table){p, (uint32_t)n, size};
	return p;
}

static void take_strings(struct builder *b)
{
	struct fusee_str *s = table(b, &b->profile.strings, b->strings.n, sizeof(*s));

	for (uint32_t i = 0; s && i < b->strings.n; i++)
		s[i] = text_of(b, i);
}

static void take_functions(struct builder *b)
{
	struct fusee_function *f = table(b, &b->profile.functions, b->functions.n, sizeof(*f));

	for (uint32_t i = 1; f && i < b->functions.n; i++)
		memcpy(&f[i], b->functions.entries[i].key, sizeof(*f));
}

static void take_mappings(struct builder *b)
{
	struct fusee_mapping *m = table(b, &b->profile.mappings, b->mappings.n, sizeof(*m));
	const uint32_t *flags = (const uint32_t *)(const void *)b->mapping_flags.p;

	for (uint32_t i = 1; m && i < b->mappings.n; i++) {
		const struct mapping_key *k = b->mappings.entries[i].key;

		m[i] = (struct fusee_mapping){.path = k->path,
					      .build_id = k->build_id,
					      .flags = flags[i],
					      .start = k->start,
					      .limit = k->limit,
					      .offset = k->offset};
	}
}

static void take_locations(struct builder *b)
{
	struct fusee_location *l = table(b, &b->profile.locations, b->locations.n, sizeof(*l));
	struct fusee_line *lines;
	uint64_t n = 0;

	for (uint32_t i = 1; l && i < b->locations.n; i++) {
		memcpy(&l[i], b->locations.entries[i].key, sizeof(*l));
		l[i].first_line = (uint32_t)n;
		n += l[i].nlines;
	}
	lines = table(b, &b->profile.lines, n, sizeof(*lines));
	for (uint32_t i = 1; l && lines && i < b->locations.n; i++)
		memcpy(&lines[l[i].first_line],
		       (const char *)b->locations.entries[i].key + sizeof(*l),
		       l[i].nlines * sizeof(*lines));
}

static void take_stacks(struct builder *b)
{
	struct fusee_stack *s = table(b, &b->profile.stacks, b->stacks.n, sizeof(*s));
	uint64_t n = 0;
	uint32_t *to;

	for (uint32_t i = 1; s && i < b->stacks.n; i++) {
		s[i].first = (uint32_t)n;
		s[i].n = b->stacks.entries[i].len / sizeof(*to);
		n += s[i].n;
	}
	to = table(b, &b->profile.stack_locations, n, sizeof(*to));
	for (uint32_t i = 1; s && to && i < b->stacks.n; i++)
		memcpy(&to[s[i].first], b->stacks.entries[i].key, b->stacks.entries[i].len);
}

static void take_labels(struct builder *b, const struct sample_key *k, struct fusee_label *to)
{
	const struct label_key *from = (const struct label_key *)(k + 1);

	for (uint32_t i = 0; i < k->nlabels; i++) {
		to[i] = (struct fusee_label){.key = text_of(b, from[i].key), .num = from[i].num};
		if (from[i].is_str)
			to[i].str = text_of(b, from[i].str);
		else
			to[i].unit = text_of(b, from[i].unit);
	}
}

static void take_samples(struct builder *b)
{
	struct fusee_sample *s = table(b, &b->profile.samples, b->samples.n - 1, sizeof(*s));
	struct fusee_label *labels;
	uint64_t n = 0;

	for (uint32_t i = 1; s && i < b->samples.n; i++) {
		const struct sample_key *k = b->samples.entries[i].key;

		s[i - 1] = (struct fusee_sample){.stack = k->stack,
						 .first_label = (uint32_t)n,
						 .nlabels = k->nlabels,
						 .pid = k->pid,
						 .tid = k->tid};
		n += k->nlabels;
	}
	labels = table(b, &b->profile.labels, n, sizeof(*labels));
	for (uint32_t i = 1; s && labels && i < b->samples.n; i++)
		take_labels(b, b->samples.entries[i].key, labels + s[i - 1].first_label);
}

static void take_rest(struct builder *b)
{
	struct fusee_profile *p = &b->profile;
	const uint32_t *comment = (const uint32_t *)(const void *)b->comments.p;
	const struct loss *loss = (const struct loss *)(const void *)b->losses.p;
	size_t ncomments = b->comments.len / sizeof(*comment),
	       nlosses = b->losses.len / sizeof(*loss);
	struct fusee_str *c = table(b, &p->comments, ncomments, sizeof(*c));
	struct fusee_label *l = table(b, &p->losses, nlosses, sizeof(*l));

	for (size_t i = 0; c && i < ncomments; i++)
		c[i] = text_of(b, comment[i]);
	for (size_t i = 0; l && i < nlosses; i++)
		l[i] = (struct fusee_label){.key = text_of(b, loss[i].reason),
					    .str = stage_text(loss[i].stage),
					    .num = loss[i].n};
	p->types = (struct fusee_table){b->types.p, b->ntypes, sizeof(struct fusee_value_type)};
	p->values = (struct fusee_table){b->values.p, (b->samples.n - 1) * b->ntypes,
					 sizeof(int64_t)};
	p->resource = (struct fusee_table){b->resource.p, (uint32_t)(b->resource.len / sizeof(*l)),
					   sizeof(*l)};
}

int builder_finish(struct builder *b, const struct fusee_profile **ret)
{
	if (closed(b))
		return b->error;
	b->finished = true;
	take_strings(b);
	take_functions(b);
	take_mappings(b);
	take_locations(b);
	take_stacks(b);
	take_samples(b);
	take_rest(b);
	if (b->error)
		return b->error;
	*ret = &b->profile;
	return 0;
}
