/* SPDX-License-Identifier: Apache-2.0 */
#include "encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#include "dictionary.h"
#include "names.h"

/* Of a sample or a resource; a profile's sample has 66 labels at most. */
#define MAX_ATTRIBUTES 72

#define KNOWN 1024 /* a power of two */
#define KNOWN_ATTRIBUTES 256

/* An attribute of samples, by its label. */
struct known_attribute {
	struct fusee_label label;
	uint32_t number; /* 0: none */
};

struct encoder {
	const struct fusee_profile *p;
	struct fusee_table more;
	struct dictionary d;
	struct fusee_bytes *out;
	struct table resources; /* bytes of their attributes; 0 is none's */
	uint32_t *resource_of;  /* by index of the sample */
	uint32_t *order;        /* samples, those of a resource together */
	struct fusee_bytes resource, clean;
	struct fusee_bytes samples; /* of one resource, without their values */
	size_t *ends;               /* the end of each of these samples */
	uint32_t profiles;          /* written so far */
	uint32_t known[KNOWN];      /* by a hash of labels: a sample with them, + 1; 0: none */
	struct known_attribute attributes[KNOWN_ATTRIBUTES]; /* by a hash of the label */
};

/* Attributes of one element; of equal names the first counts. */
struct attributes {
	struct fusee_str keys[MAX_ATTRIBUTES];
	uint32_t n;
};

static const struct fusee_str none = {"", 0};

/* true: the name is not empty, and new. */
static bool is_new(struct attributes *a, struct fusee_str key)
{
	if (!key.len || a->n == MAX_ATTRIBUTES)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->keys[i].len == key.len && !memcmp(a->keys[i].p, key.p, key.len))
			return false;
	a->keys[a->n++] = key;
	return true;
}

static struct proto_value value_of(const struct fusee_label *l)
{
	if (!l->str.p)
		return (struct proto_value){.kind = PROTO_NUMBER, .number = l->num};
	return (struct proto_value){.kind = PROTO_TEXT, .text = l->str};
}

/* ---- resources ---- */

static void put_resource_label(struct encoder *e, struct attributes *a, const struct names *names,
			       const struct fusee_label *l)
{
	struct fusee_str key = names_of(names, l);
	struct proto_value v = value_of(l);
	struct fusee_bytes clean_key = {0};

	if (!is_new(a, key))
		return;
	v.text = dictionary_clean(&e->clean, v.text);
	key = dictionary_clean(&clean_key, key);
	if (e->clean.error || clean_key.error)
		e->d.error = -ENOMEM;
	else
		proto_resource_attribute(&e->resource, key, &v);
	fusee_bytes_fini(&clean_key);
}

static void see_all(struct names *names, struct fusee_table labels, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		names_see(names, FUSEE_AT(struct fusee_label, labels, first + i));
}

/* The number of the resource that the sample is of. */
static uint32_t find_resource(struct encoder *e, const struct fusee_sample *s)
{
	const struct fusee_profile *p = e->p;
	struct fusee_label pid = {.key = FUSEE_TEXT(NAME_PID), .num = s->pid};
	struct attributes a = {.n = 0};
	struct names names = {0};

	see_all(&names, p->labels, s->first_label, s->nlabels);
	see_all(&names, p->resource, 0, p->resource.n);
	fusee_bytes_reset(&e->resource);
	FUSEE_FOR_EACH (struct fusee_label, l, e->more)
		put_resource_label(e, &a, &names, l);
	for (uint32_t i = 0; i < s->nlabels; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels,
						       s->first_label + i);

		if (!names_is_of_sample(l))
			put_resource_label(e, &a, &names, l);
	}
	FUSEE_FOR_EACH (struct fusee_label, l, p->resource)
		put_resource_label(e, &a, &names, l);
	if (s->pid)
		put_resource_label(e, &a, &names, &pid);
	if (e->resource.error)
		e->d.error = e->resource.error;
	return e->d.error ? 0
			  : table_add(&e->resources, e->resource.len ? e->resource.p : "",
				      e->resource.len, &e->d.error);
}

static const struct fusee_label *label_of(const struct encoder *e, const struct fusee_sample *s,
					  uint32_t i)
{
	return FUSEE_AT(struct fusee_label, e->p->labels, s->first_label + i);
}

static bool is_same_text(struct fusee_str a, struct fusee_str b)
{
	return a.p == b.p && a.len == b.len;
}

/* Equal texts of a profile mostly have one address, so texts with equal addresses are not compared.
 */
static bool has_same_labels(const struct encoder *e, const struct fusee_sample *a,
			    const struct fusee_sample *b)
{
	if (a->pid != b->pid || a->nlabels != b->nlabels)
		return false;
	for (uint32_t i = 0; i < a->nlabels; i++) {
		const struct fusee_label *x = label_of(e, a, i), *y = label_of(e, b, i);

		if (!is_same_text(x->key, y->key) || !is_same_text(x->str, y->str) ||
		    x->num != y->num)
			return false;
	}
	return true;
}

/* By the addresses of its texts, as above. */
static uint64_t hash_of(const struct fusee_label *l, uint64_t h)
{
	h ^= (uintptr_t)l->key.p ^ (uintptr_t)l->str.p << 7 ^ (uint64_t)l->num;
	return h * 0x9e3779b97f4a7c15u;
}

static uint32_t slot_of(const struct encoder *e, const struct fusee_sample *s)
{
	uint64_t h = s->pid;

	for (uint32_t i = 0; i < s->nlabels; i++)
		h = hash_of(label_of(e, s, i), h);
	return (uint32_t)(h >> 32) & (KNOWN - 1);
}

/* find_resource() of sample i, with a cache; earlier samples have their resources already. */
static uint32_t resource_of(struct encoder *e, uint32_t i)
{
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, e->p->samples, i);
	uint32_t *known = &e->known[slot_of(e, s)];

	if (*known &&
	    has_same_labels(e, s, FUSEE_AT(struct fusee_sample, e->p->samples, *known - 1)))
		return e->resource_of[*known - 1];
	*known = i + 1;
	return find_resource(e, s);
}

/* Samples sorted by their resources; starts[r] to starts[r + 1] are those of r. NULL: no memory. */
static uint32_t *sort_samples(struct encoder *e)
{
	uint32_t n = e->p->samples.n, *starts, *next;

	for (uint32_t i = 0; i < n && !e->d.error; i++)
		e->resource_of[i] = resource_of(e, i);
	starts = calloc((size_t)e->resources.n + 1, sizeof(*starts));
	next = calloc((size_t)e->resources.n + 1, sizeof(*next));
	if (starts && next) {
		for (uint32_t i = 0; i < n; i++)
			starts[e->resource_of[i] + 1]++;
		for (uint32_t r = 0; r < e->resources.n; r++)
			next[r + 1] = starts[r + 1] += starts[r];
		for (uint32_t i = 0; i < n; i++)
			e->order[next[e->resource_of[i]]++] = i;
		free(next);
		return starts;
	}
	free(starts);
	free(next);
	return NULL;
}

/* ---- profiles ---- */

/* The comments, in *bytes, as an attribute. */
static uint32_t add_comments(struct encoder *e, struct fusee_bytes *bytes)
{
	uint32_t n = e->p->comments.n, i = 0, number;
	struct fusee_str *texts = calloc((size_t)n + 1, sizeof(*texts)), clean;
	struct proto_value v = {.kind = PROTO_TEXTS, .texts = {texts, n, sizeof(*texts)}};
	const char *at;

	FUSEE_FOR_EACH (struct fusee_str, s, e->p->comments) {
		clean = dictionary_clean(&e->clean, *s);
		fusee_bytes_add(bytes, clean.p, clean.len);
		if (texts)
			texts[i++].len = clean.len;
	}
	if (!texts || e->clean.error || bytes->error) {
		e->d.error = -ENOMEM;
		free(texts);
		return 0;
	}
	at = bytes->p;
	for (i = 0; i < n; at += texts[i++].len)
		texts[i].p = at;
	number = dictionary_attribute(&e->d, fusee_text(NAME_COMMENT), &v, none);
	free(texts);
	return number;
}

/* Losses and comments, which are of the profile itself. */
static uint32_t profile_attributes(struct encoder *e, uint32_t *to)
{
	struct attributes a = {.n = 0};
	struct fusee_bytes comments = {0};
	char keys[MAX_ATTRIBUTES][128];
	uint32_t n = 0;

	FUSEE_FOR_EACH (struct fusee_label, l, e->p->losses) {
		struct proto_value v = {.kind = PROTO_NUMBER, .number = l->num};
		char *key = keys[a.n];
		int len;

		if (a.n == MAX_ATTRIBUTES - 1)
			break;
		len = snprintf(key, sizeof(keys[0]), "fusee.%.*s.%.*s", (int)l->str.len, l->str.p,
			       (int)l->key.len, l->key.p);
		for (char *c = key; *c; c++)
			*c = *c == ' ' ? '_' : *c;
		if (len > 0 && is_new(&a, fusee_text(key)))
			to[n++] = dictionary_attribute(&e->d, fusee_text(key), &v, none);
	}
	if (e->p->comments.n)
		to[n++] = add_comments(e, &comments);
	fusee_bytes_fini(&comments);
	return n;
}

/* Caches attributes by address, because samples of a thread repeat the same labels. */
static uint32_t label_attribute(struct encoder *e, struct fusee_str key,
				const struct fusee_label *l)
{
	uint64_t h = hash_of(l, 0);
	struct known_attribute *known =
		&e->attributes[(uint32_t)(h >> 32) & (KNOWN_ATTRIBUTES - 1)];
	struct proto_value v = value_of(l);

	if (!known->number || memcmp(&known->label, l, sizeof(*l)))
		*known = (struct known_attribute){*l,
						  dictionary_attribute(&e->d, key, &v, l->unit)};
	return known->number;
}

static uint32_t sample_attributes(struct encoder *e, const struct fusee_sample *s, uint32_t *to)
{
	struct fusee_label tid = {.key = FUSEE_TEXT(NAME_TID), .num = s->tid};
	struct names names = {0};
	struct attributes a;
	uint32_t n = 0;

	a.n = 0; /* later names are ignored without clearing them, as there are many samples */
	for (uint32_t i = 0; i < s->nlabels; i++) {
		const struct fusee_label *l = label_of(e, s, i);
		struct fusee_str key;

		if (!names_is_of_sample(l))
			continue;
		key = names_of(&names, l);
		if (is_new(&a, key))
			to[n++] = label_attribute(e, key, l);
	}
	if (s->tid && is_new(&a, tid.key))
		to[n++] = label_attribute(e, tid.key, &tid);
	return n;
}

/* Makes the parts of samples that are equal in the profiles of all values. */
static void make_samples(struct encoder *e, const uint32_t *samples, uint32_t n)
{
	uint32_t attributes[MAX_ATTRIBUTES], count;

	fusee_bytes_reset(&e->samples);
	for (uint32_t i = 0; i < n; i++) {
		const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, e->p->samples,
							samples[i]);

		count = sample_attributes(e, s, attributes);
		proto_sample(&e->samples,
			     &(struct proto_sample){.stack = dictionary_stack(&e->d, s->stack),
						    .link = dictionary_link(&e->d, s),
						    .attributes = {attributes, count}});
		e->ends[i] = e->samples.len;
	}
	if (e->samples.error)
		e->d.error = e->samples.error;
}

static void write_samples(struct encoder *e, uint32_t type, const uint32_t *samples, uint32_t n)
{
	const struct fusee_profile *p = e->p;
	size_t from = 0;

	for (uint32_t i = 0; i < n && !e->d.error; i++) {
		uint64_t value = (uint64_t)samples[i] * p->types.n + type;

		proto_value_of_sample(e->out,
				      (struct fusee_str){e->samples.p + from, e->ends[i] - from},
				      *FUSEE_AT(int64_t, p->values, value));
		from = e->ends[i];
	}
}

static void write_profile(struct encoder *e, uint32_t type, const uint32_t *samples, uint32_t n)
{
	const struct fusee_profile *p = e->p;
	const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, type);
	uint32_t attributes[MAX_ATTRIBUTES];
	struct proto_profile head = {
		.period = p->period, .start_ns = p->start_ns, .duration_ns = p->duration_ns};
	size_t begun;

	head.type.type = dictionary_string(&e->d, t->type);
	head.type.unit = dictionary_string(&e->d, t->unit);
	head.period_type.type = dictionary_string(&e->d, p->period_type);
	head.period_type.unit = dictionary_string(&e->d, p->period_unit);
	/* a different id for each, the same at each attempt; the first has the profile's id */
	memcpy(head.id, p->id, sizeof(head.id));
	for (uint32_t i = 0; i < 4; i++)
		head.id[12 + i] ^= (uint8_t)(e->profiles >> 8 * i);
	head.attributes.at = attributes;
	head.attributes.n = e->profiles ? 0 : profile_attributes(e, attributes);
	e->profiles++;
	begun = proto_begin_profile(e->out, &head);
	write_samples(e, type, samples, n);
	fusee_proto_end(e->out, begun);
}

/* The profiles of one resource: of the default type, which is shown first, then of the others. */
static void write_resource(struct encoder *e, uint32_t resource, const uint32_t *samples,
			   uint32_t n)
{
	uint32_t ntypes = e->p->types.n,
		 first = e->p->default_type < ntypes ? e->p->default_type : 0;
	size_t all = proto_begin_resource(e->out), profiles;

	make_samples(e, samples, n);
	profiles = proto_begin_scope(e->out, table_at(&e->resources, resource));
	for (uint32_t i = 0; i < ntypes; i++)
		write_profile(e, i == 0 ? first : i <= first ? i - 1 : i, samples, n);
	fusee_proto_end(e->out, profiles);
	fusee_proto_end(e->out, all);
}

/* Added before all other texts, so that their numbers, which each profile contains, are short. */
static void add_types(struct encoder *e)
{
	FUSEE_FOR_EACH (struct fusee_value_type, t, e->p->types) {
		dictionary_string(&e->d, t->type);
		dictionary_string(&e->d, t->unit);
	}
	dictionary_string(&e->d, e->p->period_type);
	dictionary_string(&e->d, e->p->period_unit);
}

static int encode(struct encoder *e)
{
	size_t n = (size_t)e->p->samples.n + 1;
	uint32_t *starts;

	if (dictionary_init(&e->d, e->p) || table_init(&e->resources, 1))
		return -ENOMEM;
	e->resource_of = calloc(n, sizeof(*e->resource_of));
	e->order = calloc(n, sizeof(*e->order));
	e->ends = calloc(n, sizeof(*e->ends));
	starts = e->resource_of && e->order && e->ends ? sort_samples(e) : NULL;
	if (!starts)
		return -ENOMEM;
	add_types(e);
	for (uint32_t r = 0; r < e->resources.n && !e->d.error; r++)
		if (starts[r + 1] > starts[r])
			write_resource(e, r, e->order + starts[r], starts[r + 1] - starts[r]);
	free(starts);
	dictionary_write(&e->d, e->out);
	return e->d.error ? e->d.error : e->out->error;
}

int encode_request(const struct fusee_profile *p, struct fusee_table more, struct fusee_bytes *out,
		   uint32_t *profiles)
{
	struct encoder e = {.p = p, .more = more, .out = out};
	int r = encode(&e);

	*profiles = e.profiles;
	dictionary_fini(&e.d);
	table_fini(&e.resources);
	free(e.resource_of);
	free(e.order);
	free(e.ends);
	fusee_bytes_fini(&e.resource);
	fusee_bytes_fini(&e.clean);
	fusee_bytes_fini(&e.samples);
	return r;
}
