/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each sample is added to the part together with the table elements that it refers to. If a sample
 * makes the part too large, its elements are removed again and the part is passed to the caller.
 * The size is counted as the encoder would write it; numbers of strings, which are not known yet,
 * count as the longest.
 */
#include "pprof/split.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#include "base/dict.h"
#include "profile/check.h"
#include "pprof/internal/flags.h"
#include "pprof/internal/interpreter.h"
#include "profile/str.h"

/* Bytes of labels with a trace and a span, and of their texts, besides numbers of strings. */
#define ID_LABELS 80u

/* The elements of a table that a part has. */
struct chosen {
	uint32_t *to;   /* by index in the profile: index in the part; 0: it is not in the part */
	uint32_t *from; /* by index in the part: index in the profile; [0] is the empty element */
	uint32_t n;
};

struct label_texts {
	uint32_t key, str, unit; /* ids among all texts of labels */
};

struct split {
	const struct fusee_profile *p;
	struct chosen strings, functions, guessed, mappings, locations, stacks, texts;
	struct dict label_dict;
	struct label_texts *labels; /* by label of the profile */
	uint32_t string_id;         /* bytes of the longest number of a string */
	uint64_t head;              /* bytes that each part has */
	uint64_t every_sample;      /* bytes of the resource's labels on each sample */
	uint64_t bytes;             /* of the part so far */
	bool languages;             /* several occur: system names have them */
};

static uint32_t varint(uint64_t v)
{
	uint32_t n = 1;

	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

/* A field of `len` bytes with its tag and length. */
static uint64_t field(uint64_t len)
{
	return 1 + varint(len) + len;
}

/* ---- elements of a part ---- */

static int chosen_init(struct chosen *c, uint32_t n)
{
	c->to = calloc((size_t)n + 1, sizeof(*c->to));
	c->from = calloc((size_t)n + 1, sizeof(*c->from));
	c->n = 1;
	return c->to && c->from ? 0 : -ENOMEM;
}

static void chosen_fini(struct chosen *c)
{
	free(c->to);
	free(c->from);
}

/* true: the element is new in this part. */
static bool choose(struct chosen *c, uint32_t i)
{
	if (!i || c->to[i])
		return false;
	c->from[c->n] = i;
	c->to[i] = c->n++;
	return true;
}

static void shorten(struct chosen *c, uint32_t n)
{
	while (c->n > n)
		c->to[c->from[--c->n]] = 0;
}

static void add_string(struct split *s, uint32_t i)
{
	if (choose(&s->strings, i))
		s->bytes += field(str_at(s->p, i).len);
}

static void add_text(struct split *s, uint32_t id)
{
	if (choose(&s->texts, id))
		s->bytes += field(s->label_dict.entries[id].len);
}

static void add_function(struct split *s, uint32_t i)
{
	const struct fusee_function *f = FUSEE_AT(struct fusee_function, s->p->functions, i);

	if (!choose(&s->functions, i))
		return;
	add_string(s, f->name);
	add_string(s, f->system_name);
	add_string(s, f->file);
	s->bytes += field(1 + varint(s->functions.to[i]) + 3 * (1 + s->string_id) + 1 +
			  varint(f->start_line));
	if (f->flags || s->languages) /* a system name of its own, with the flags in it */
		s->bytes += field(str_at(s->p, f->system_name).len + PPROF_FLAGS_MOST);
}

/* The same function with a mark. */
static void add_guessed(struct split *s, uint32_t i)
{
	const struct fusee_function *f = FUSEE_AT(struct fusee_function, s->p->functions, i);
	uint32_t n = s->p->functions.n;

	if (!choose(&s->guessed, i))
		return;
	s->bytes += field(1 + varint(pprof_guessed_id(n, n)) + 3 * (1 + s->string_id) + 1 +
			  varint(f->start_line));
	s->bytes += field(str_at(s->p, f->name).len + str_at(s->p, f->system_name).len +
			  PPROF_FLAGS_MOST);
}

static void add_mapping(struct split *s, uint32_t i)
{
	const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, s->p->mappings, i);

	if (!choose(&s->mappings, i))
		return;
	add_string(s, m->path);
	add_string(s, m->build_id);
	s->bytes += field(4 + varint(s->mappings.to[i]) + varint(m->start) + varint(m->limit) +
			  varint(m->offset) + 2 * (1 + s->string_id) + 4 * 2);
}

/* Bytes of the number by which the location names the function, or more. */
static uint64_t function_id(const struct split *s, const struct fusee_location *l,
			    uint32_t function)
{
	return l->flags & FUSEE_LOCATION_GUESSED
		       ? varint(pprof_guessed_id(s->p->functions.n, s->p->functions.n))
		       : varint(s->functions.to[function]);
}

static void add_location(struct split *s, uint32_t i)
{
	const struct fusee_location *l = FUSEE_AT(struct fusee_location, s->p->locations, i);
	uint64_t len = 0;

	if (!choose(&s->locations, i))
		return;
	add_string(s, l->frame_type);
	add_string(s, l->language);
	add_mapping(s, l->mapping);
	for (uint32_t k = 0; k < l->nlines; k++) {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, s->p->lines,
							 l->first_line + k);

		add_function(s, line->function);
		if (l->flags & FUSEE_LOCATION_GUESSED)
			add_guessed(s, line->function);
		len += field(3 + function_id(s, l, line->function) + varint(line->line) +
			     varint(line->column));
	}
	s->bytes += field(3 + varint(s->locations.to[i]) + varint(s->mappings.to[l->mapping]) +
			  varint(l->address) + len);
}

static uint64_t stack_ids(struct split *s, uint32_t i)
{
	const struct fusee_stack *stack = FUSEE_AT(struct fusee_stack, s->p->stacks, i);
	uint64_t len = 0;

	choose(&s->stacks, i);
	for (uint32_t k = 0; k < stack->n; k++) {
		uint32_t l = *FUSEE_AT(uint32_t, s->p->stack_locations, stack->first + k);

		add_location(s, l);
		len += varint(s->locations.to[l]);
	}
	return len ? len : varint(s->p->locations.n);
}

static uint64_t label_bytes(struct split *s, uint32_t i)
{
	const struct fusee_label *l = FUSEE_AT(struct fusee_label, s->p->labels, i);

	add_text(s, s->labels[i].key);
	add_text(s, s->labels[i].str);
	add_text(s, s->labels[i].unit);
	return field(2 + 2 * s->string_id + (l->str.p ? 0 : 1 + varint((uint64_t)l->num)));
}

static void add_sample(struct split *s, uint32_t i)
{
	const struct fusee_profile *p = s->p;
	const struct fusee_sample *sample = FUSEE_AT(struct fusee_sample, p->samples, i);
	uint64_t values = 0, len;

	len = field(stack_ids(s, sample->stack)) + s->every_sample;
	for (uint32_t k = 0; k < p->types.n; k++)
		values += varint(
			(uint64_t)*FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n + k));
	len += field(values);
	if (sample->span_id || sample->trace_id[0] || sample->trace_id[1]) /* two labels */
		len += ID_LABELS + 4 * s->string_id;
	for (uint32_t k = 0; k < sample->nlabels; k++)
		len += label_bytes(s, sample->first_label + k);
	if (sample->pid)
		len += field(2 + s->string_id + varint(sample->pid));
	if (sample->tid)
		len += field(2 + s->string_id + varint(sample->tid));
	s->bytes += field(len);
}

/* ---- before the first part ---- */

static void add_head_strings(struct split *s)
{
	const struct fusee_profile *p = s->p;

	add_string(s, p->kind);
	add_string(s, p->period_type);
	add_string(s, p->period_unit);
	for (uint32_t i = 0; i < p->types.n; i++) {
		const struct fusee_value_type *t = FUSEE_AT(struct fusee_value_type, p->types, i);

		add_string(s, t->type);
		add_string(s, t->unit);
	}
}

static void begin_part(struct split *s)
{
	shorten(&s->strings, 1);
	shorten(&s->functions, 1);
	shorten(&s->guessed, 1);
	shorten(&s->mappings, 1);
	shorten(&s->locations, 1);
	shorten(&s->stacks, 1);
	shorten(&s->texts, 1);
	s->bytes = s->head;
	add_head_strings(s);
}

static void add_comment(void *arg, const char *text, uint64_t len)
{
	struct split *s = arg;

	(void)text;
	s->head += field(len) + s->string_id;
}

/* Bytes of a part besides those of its samples. Losses and interpreters count in full for each
 * part, though a part may have fewer. */
static uint64_t head_bytes(const struct split *s)
{
	const struct fusee_profile *p = s->p;
	uint64_t n = 256 + p->types.n * 16ull;

	for (uint32_t i = 0; i < p->comments.n; i++)
		n += field(FUSEE_AT(struct fusee_str, p->comments, i)->len) + s->string_id;
	for (uint32_t i = 0; i < p->losses.n; i++)
		n += field(FUSEE_AT(struct fusee_label, p->losses, i)->key.len + 64) + s->string_id;
	for (uint32_t i = 0; i < p->resource.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->resource, i);

		n += field(l->key.len) + field(l->str.len) + field(l->unit.len);
	}
	return n;
}

static uint32_t text_id(struct split *s, struct fusee_str text)
{
	return text.len ? dict_add(&s->label_dict, text.p, text.len) : 0;
}

static int take_labels(struct split *s)
{
	const struct fusee_profile *p = s->p;

	s->labels = calloc((size_t)p->labels.n + 1, sizeof(*s->labels));
	if (!s->labels || dict_init(&s->label_dict))
		return -ENOMEM;
	for (uint32_t i = 0; i < p->labels.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->labels, i);
		struct label_texts *t = &s->labels[i];

		*t = (struct label_texts){text_id(s, l->key), text_id(s, l->str),
					  text_id(s, l->unit)};
		if (t->key == DICT_NONE || t->str == DICT_NONE || t->unit == DICT_NONE)
			return -ENOMEM;
	}
	return 0;
}

static int split_init(struct split *s)
{
	const struct fusee_profile *p = s->p;
	int r = take_labels(s);

	if (r)
		return r;
	if (chosen_init(&s->strings, p->strings.n) || chosen_init(&s->functions, p->functions.n) ||
	    chosen_init(&s->guessed, p->functions.n) || chosen_init(&s->mappings, p->mappings.n) ||
	    chosen_init(&s->locations, p->locations.n) || chosen_init(&s->stacks, p->stacks.n) ||
	    chosen_init(&s->texts, s->label_dict.n))
		return -ENOMEM;
	s->string_id = varint((uint64_t)p->strings.n + s->label_dict.n + p->resource.n * 2ull +
			      p->comments.n + p->losses.n + 2ull * p->functions.n + p->mappings.n +
			      8ull);
	for (uint32_t i = 0; i < p->resource.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->resource, i);

		s->every_sample += field(2 + 2 * s->string_id +
					 (l->str.p ? 0 : 1 + varint((uint64_t)l->num)));
	}
	s->head = head_bytes(s);
	pprof_interpreter_most(p, &s->languages);
	r = pprof_interpreter_write(p, add_comment, s);
	begin_part(s);
	return r;
}

static void split_fini(struct split *s)
{
	chosen_fini(&s->strings);
	chosen_fini(&s->functions);
	chosen_fini(&s->guessed);
	chosen_fini(&s->mappings);
	chosen_fini(&s->locations);
	chosen_fini(&s->stacks);
	chosen_fini(&s->texts);
	dict_fini(&s->label_dict);
	free(s->labels);
}

/* ---- a part's tables ---- */

struct part {
	struct fusee_profile profile;
	void *tables[10];
	uint32_t ntables;
	bool failed;
};

static void *table(struct part *part, struct fusee_table *t, uint64_t n, uint32_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p) {
		part->failed = true;
		return NULL;
	}
	part->tables[part->ntables++] = p;
	*t = (struct fusee_table){p, (uint32_t)n, size};
	return p;
}

static void take_names(const struct split *s, struct part *part)
{
	const struct fusee_profile *p = s->p;
	struct fusee_profile *to = &part->profile;
	struct fusee_str *strings = table(part, &to->strings, s->strings.n, sizeof(*strings));
	struct fusee_function *f = table(part, &to->functions, s->functions.n, sizeof(*f));
	struct fusee_mapping *m = table(part, &to->mappings, s->mappings.n, sizeof(*m));

	for (uint32_t i = 1; strings && i < s->strings.n; i++)
		strings[i] = str_at(p, s->strings.from[i]);
	for (uint32_t i = 1; f && i < s->functions.n; i++) {
		f[i] = *FUSEE_AT(struct fusee_function, p->functions, s->functions.from[i]);
		f[i].name = s->strings.to[f[i].name];
		f[i].system_name = s->strings.to[f[i].system_name];
		f[i].file = s->strings.to[f[i].file];
	}
	for (uint32_t i = 1; m && i < s->mappings.n; i++) {
		m[i] = *FUSEE_AT(struct fusee_mapping, p->mappings, s->mappings.from[i]);
		m[i].path = s->strings.to[m[i].path];
		m[i].build_id = s->strings.to[m[i].build_id];
	}
}

static void take_locations(const struct split *s, struct part *part)
{
	const struct fusee_profile *p = s->p;
	struct fusee_profile *to = &part->profile;
	struct fusee_location *l = table(part, &to->locations, s->locations.n, sizeof(*l));
	struct fusee_line *lines;
	uint64_t n = 0;

	for (uint32_t i = 1; i < s->locations.n; i++)
		n += FUSEE_AT(struct fusee_location, p->locations, s->locations.from[i])->nlines;
	lines = table(part, &to->lines, n, sizeof(*lines));
	n = 0;
	for (uint32_t i = 1; l && lines && i < s->locations.n; i++) {
		l[i] = *FUSEE_AT(struct fusee_location, p->locations, s->locations.from[i]);
		for (uint32_t k = 0; k < l[i].nlines; k++) {
			struct fusee_line *line = &lines[n + k];

			*line = *FUSEE_AT(struct fusee_line, p->lines, l[i].first_line + k);
			line->function = s->functions.to[line->function];
		}
		l[i].first_line = (uint32_t)n;
		l[i].mapping = s->mappings.to[l[i].mapping];
		l[i].frame_type = s->strings.to[l[i].frame_type];
		l[i].language = s->strings.to[l[i].language];
		n += l[i].nlines;
	}
}

static void take_stacks(const struct split *s, struct part *part)
{
	const struct fusee_profile *p = s->p;
	struct fusee_profile *to = &part->profile;
	struct fusee_stack *stacks = table(part, &to->stacks, s->stacks.n, sizeof(*stacks));
	uint32_t *at;
	uint64_t n = 0;

	for (uint32_t i = 1; i < s->stacks.n; i++)
		n += FUSEE_AT(struct fusee_stack, p->stacks, s->stacks.from[i])->n;
	at = table(part, &to->stack_locations, n, sizeof(*at));
	n = 0;
	for (uint32_t i = 1; stacks && at && i < s->stacks.n; i++) {
		const struct fusee_stack *from = FUSEE_AT(struct fusee_stack, p->stacks,
							  s->stacks.from[i]);

		stacks[i] = (struct fusee_stack){(uint32_t)n, from->n};
		for (uint32_t k = 0; k < from->n; k++)
			at[n++] = s->locations.to[*FUSEE_AT(uint32_t, p->stack_locations,
							    from->first + k)];
	}
}

/* Labels, values and times of the profile are shared: what no sample of the part refers to is not
 * read. */
static void take_samples(const struct split *s, struct part *part, uint32_t first, uint32_t n)
{
	const struct fusee_profile *p = s->p;
	struct fusee_profile *to = &part->profile;
	struct fusee_sample *samples = table(part, &to->samples, n, sizeof(*samples));
	struct fusee_value_type *types = table(part, &to->types, p->types.n, sizeof(*types));

	for (uint32_t i = 0; samples && i < n; i++) {
		samples[i] = *FUSEE_AT(struct fusee_sample, p->samples, first + i);
		samples[i].stack = s->stacks.to[samples[i].stack];
	}
	for (uint32_t i = 0; types && i < p->types.n; i++) {
		types[i] = *FUSEE_AT(struct fusee_value_type, p->types, i);
		types[i].type = s->strings.to[types[i].type];
		types[i].unit = s->strings.to[types[i].unit];
	}
	if (n)
		to->values = (struct fusee_table){
			FUSEE_AT(int64_t, p->values, (uint64_t)first * p->types.n), n * p->types.n,
			p->values.stride};
}

static void part_id(const struct fusee_profile *p, uint32_t first, uint32_t n, uint8_t id[16])
{
	uint32_t which[2] = {first, n};
	uint8_t digest[32];
	SHA256_CTX h;

	SHA256_Init(&h);
	SHA256_Update(&h, p->id, sizeof(p->id));
	SHA256_Update(&h, which, sizeof(which));
	SHA256_Final(digest, &h);
	memcpy(id, digest, 16);
}

static int hand_on(const struct split *s, uint32_t first, uint32_t n,
		   int (*each)(void *arg, const struct fusee_profile *part), void *arg)
{
	const struct fusee_profile *p = s->p;
	struct part part = {.profile = *p};
	bool all = !first && n == p->samples.n;
	int r = -ENOMEM;

	/* The profile is passed on only if its samples use all of its tables: a profile with some
	 * samples of another may still have the tables of all. */
	if (all && s->locations.n == p->locations.n && s->functions.n == p->functions.n)
		return each(arg, p);
	part.profile.size = sizeof(part.profile);
	take_names(s, &part);
	take_locations(s, &part);
	take_stacks(s, &part);
	take_samples(s, &part, first, n);
	part.profile.kind = s->strings.to[p->kind];
	part.profile.period_type = s->strings.to[p->period_type];
	part.profile.period_unit = s->strings.to[p->period_unit];
	if (!all)
		part_id(p, first, n, part.profile.id);
	if (first)
		part.profile.losses.n = 0;
	if (!part.failed)
		r = each(arg, &part.profile);
	for (uint32_t i = 0; i < part.ntables; i++)
		free(part.tables[i]);
	return r;
}

/* Adds a sample if it fits; the first sample of a part always does. */
static bool fits(struct split *s, uint32_t i, uint32_t n, uint64_t max_samples, uint64_t max_bytes)
{
	uint32_t strings = s->strings.n, functions = s->functions.n, mappings = s->mappings.n;
	uint32_t guessed = s->guessed.n, locations = s->locations.n, stacks = s->stacks.n,
		 texts = s->texts.n;

	if (n && max_samples && n >= max_samples)
		return false;
	add_sample(s, i);
	if (!n || !max_bytes || s->bytes <= max_bytes)
		return true;
	shorten(&s->strings, strings);
	shorten(&s->functions, functions);
	shorten(&s->guessed, guessed);
	shorten(&s->mappings, mappings);
	shorten(&s->locations, locations);
	shorten(&s->stacks, stacks);
	shorten(&s->texts, texts);
	return false;
}

int profile_split(const struct fusee_profile *p, uint64_t max_samples, uint64_t max_bytes,
		  int (*each)(void *arg, const struct fusee_profile *part), void *arg)
{
	struct split s = {.p = p};
	uint32_t first = 0, i = 0;
	int r;

	if (!profile_check(p))
		return -EINVAL;
	r = split_init(&s);
	while (!r && i < p->samples.n) {
		if (fits(&s, i, i - first, max_samples, max_bytes)) {
			i++;
			continue;
		}
		r = hand_on(&s, first, i - first, each, arg);
		first = i;
		begin_part(&s);
	}
	if (!r)
		r = hand_on(&s, first, i - first, each, arg);
	split_fini(&s);
	return r;
}

uint64_t profile_samples(const struct fusee_profile *p)
{
	uint64_t sum = 0;
	uint32_t type = 0;

	for (; type < p->types.n; type++) {
		uint32_t name = FUSEE_AT(struct fusee_value_type, p->types, type)->type;

		if (fusee_text_is(str_at(p, name), "samples"))
			break;
	}
	if (type == p->types.n)
		return p->samples.n;
	for (uint64_t i = type; i < p->values.n; i += p->types.n) {
		int64_t v = *FUSEE_AT(int64_t, p->values, i);

		sum += v > 0 ? (uint64_t)v : 0;
	}
	return sum;
}
