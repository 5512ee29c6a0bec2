/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a message of profile.proto from any source into a profile. It checks all that pprof's
 * own reader checks (profile.CheckValid and the decoder before it), so that pprof can read each
 * file that this reads.
 */
#include "pprof/pprof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "profile/builder.h"
#include "pprof/internal/flags.h"
#include "pprof/internal/ids.h"
#include "pprof/internal/infer.h"
#include "pprof/internal/interpreter.h"
#include "loss/comment.h"
#include "pprof/internal/sample.h"
#include "pprof/internal/unpack.h"

typedef Perftools__Profiles__Mapping Mapping;
typedef Perftools__Profiles__Location Location;
typedef Perftools__Profiles__Function Function;
typedef Perftools__Profiles__Line Line;
typedef Perftools__Profiles__ValueType ValueType;

struct pprof_file {
	struct builder *builder;
	const struct fusee_profile *profile;
};

#define AHEAD 8

struct decoder {
	const char *error; /* NULL: none so far */
	int code;
	struct pprof_message *message;
	Perftools__Profiles__Profile *in; /* of the message, without samples */
	struct builder *b;
	uint32_t *strings; /* by index in the file: index in the builder */
	struct pprof_ids mappings, functions, locations;
	bool counted; /* location i of `locations` has the id i + 1 */
	struct pprof_sample
		samples[AHEAD];   /* the stacks of the latest are expected by the builder */
	struct buf stacks[AHEAD]; /* uint32_t: their locations in the builder */
	bool has_before;          /* a sample was read */
	struct buf before;        /* labels of the sample before, as they are in the file */
	struct buf lines, labels;
	struct pprof_interpreter interpreter;
};

static int fail(struct decoder *d, int code, const char *error)
{
	if (!d->error) {
		d->error = error;
		d->code = code;
	}
	return d->code;
}

/* ---- ids ---- */

static int make(struct decoder *d, struct pprof_ids *ids, size_t n)
{
	return pprof_ids_make(ids, n) ? fail(d, -ENOMEM, "no memory") : 0;
}

static void close_ids(struct decoder *d, struct pprof_ids *ids, const char *zero, const char *twice)
{
	if (pprof_ids_close(ids))
		fail(d, -EINVAL, ids->n && !ids->at[0].id ? zero : twice);
}

/* ---- strings ---- */

static const char *raw(struct decoder *d, int64_t i)
{
	if (i >= 0 && (uint64_t)i < d->in->n_string_table)
		return d->in->string_table[i];
	fail(d, -EINVAL, "a string's number is outside the string table");
	return "";
}

static uint32_t string(struct decoder *d, int64_t i)
{
	const char *s = raw(d, i);

	if (d->error)
		return 0;
	if (d->strings[i] == BUILDER_NONE)
		d->strings[i] = builder_cstr(d->b, s);
	return d->strings[i];
}

static int read_strings(struct decoder *d)
{
	size_t n = d->in->n_string_table;

	if (!n)
		return fail(d, -EINVAL, "the profile has no string table");
	if (*d->in->string_table[0])
		return fail(d, -EINVAL, "the first string of the string table is not empty");
	d->strings = malloc(n * sizeof(*d->strings));
	if (!d->strings)
		return fail(d, -ENOMEM, "no memory");
	memset(d->strings, 0xff, n * sizeof(*d->strings));
	return 0;
}

/* ---- tables ---- */

static void read_mappings(struct decoder *d)
{
	bool main = true;

	if (make(d, &d->mappings, d->in->n_mapping))
		return;
	for (size_t i = 0; i < d->in->n_mapping && !d->error; i++) {
		const Mapping *m = d->in->mapping[i];
		struct fusee_mapping to = {.path = string(d, m->filename),
					   .build_id = string(d, m->build_id),
					   .start = m->memory_start,
					   .limit = m->memory_limit,
					   .offset = m->file_offset};

		to.flags = pprof_kind_of_mapping(raw(d, m->filename), main);
		main = to.flags & FUSEE_MAPPING_MAIN || (i && main);
		to.flags |= m->has_functions ? FUSEE_MAPPING_FUNCTIONS : 0;
		to.flags |= m->has_filenames ? FUSEE_MAPPING_FILENAMES : 0;
		to.flags |= m->has_line_numbers ? FUSEE_MAPPING_LINES : 0;
		to.flags |= m->has_inline_frames ? FUSEE_MAPPING_INLINES : 0;
		d->mappings.at[d->mappings.n++] = (struct pprof_id){
			.id = m->id,
			.name = raw(d, m->filename),
			.index = builder_mapping(d->b, &to)};
	}
	close_ids(d, &d->mappings, "a mapping has the id 0", "two mappings have the same id");
}

static uint32_t small(int64_t v)
{
	return v > 0 && v < UINT32_MAX ? (uint32_t)v : 0;
}

static struct pprof_id read_function(struct decoder *d, const Function *f)
{
	struct fusee_function to = {.name = string(d, f->name),
				    .system_name = string(d, f->system_name),
				    .file = string(d, f->filename),
				    .start_line = small(f->start_line)};
	const char *name = raw(d, f->system_name);
	struct fusee_str language;
	size_t len = strlen(name);
	bool guessed;

	to.flags = pprof_flags_read(name, &len, &language);
	if (to.flags || language.len)
		to.system_name = builder_string(d->b, name, len);
	guessed = to.flags & PPROF_FLAG_GUESSED;
	to.flags &= ~PPROF_FLAG_GUESSED;
	return (struct pprof_id){
		.id = f->id,
		.guessed = guessed,
		.name = raw(d, f->name),
		.index = builder_function(d->b, &to),
		.language = language.len ? builder_string(d->b, language.p, language.len) : 0,
	};
}

static void read_functions(struct decoder *d)
{
	if (make(d, &d->functions, d->in->n_function))
		return;
	for (size_t i = 0; i < d->in->n_function && !d->error; i++)
		d->functions.at[d->functions.n++] = read_function(d, d->in->function[i]);
	close_ids(d, &d->functions, "a function has the id 0", "two functions have the same id");
}

/* *inner, *outer: the innermost and the outermost function. */
static int read_lines(struct decoder *d, const Location *l, const char **inner, const char **outer)
{
	buf_reset(&d->lines);
	*inner = *outer = "";
	for (size_t i = 0; i < l->n_line; i++) {
		const Line *line = l->line[i];
		const struct pprof_id *function = pprof_ids_find(&d->functions, line->function_id);
		struct fusee_line to = {.line = small(line->line),
					.column = small(line->column),
					.flags = i + 1 < l->n_line ? FUSEE_LINE_INLINED : 0};

		if (!function)
			return fail(d, -EINVAL, "a line's function is not in the profile");
		to.function = function->index;
		if (!i)
			*inner = function->name;
		*outer = function->name;
		if (buf_add(&d->lines, &to, sizeof(to)))
			return fail(d, -ENOMEM, "no memory");
	}
	return 0;
}

/* Is the location an interpreter's own code? */
static void find_interpreter(struct decoder *d, const struct pprof_id *mapping,
			     const char *function, struct fusee_location *to)
{
	struct fusee_str language;

	if (!pprof_interpreter_has(&d->interpreter, mapping->name, function, &language))
		return;
	to->flags |= FUSEE_LOCATION_INTERPRETER;
	to->language = builder_string(d->b, language.p, language.len);
}

static bool is_guessed(const struct decoder *d, const Location *l)
{
	const struct pprof_id *function = l->n_line ? pprof_ids_find(&d->functions,
								     l->line[0]->function_id)
						    : NULL;

	return function && function->guessed;
}

/* The frame type of a location without code. */
static uint32_t language_of(struct decoder *d, const Location *l)
{
	const struct pprof_id *function = pprof_ids_find(&d->functions, l->line[0]->function_id);

	if (function && function->language)
		return function->language;
	return d->interpreter.language ? builder_cstr(d->b, d->interpreter.language) : 0;
}

static int read_location(struct decoder *d, const Location *l)
{
	const struct pprof_id *mapping = l->mapping_id ? pprof_ids_find(&d->mappings, l->mapping_id)
						       : NULL;
	struct fusee_location to = {.address = l->address};
	const struct fusee_line *lines;
	const char *name, *outer;
	uint32_t index;

	if (l->mapping_id && !mapping)
		return fail(d, -EINVAL, "a location's mapping is not in the profile");
	if (read_lines(d, l, &name, &outer))
		return d->code;
	lines = (const struct fusee_line *)(const void *)d->lines.p;
	if (mapping) {
		to.mapping = mapping->index;
		if (pprof_kind_of_mapping(mapping->name, false) & FUSEE_MAPPING_KERNEL)
			to.frame_type = builder_cstr(d->b, "kernel");
	}
	if (l->n_line == 1)
		to.flags = pprof_kind_of_location(name, mapping ? mapping->name : NULL);
	if (is_guessed(d, l))
		to.flags |= FUSEE_LOCATION_GUESSED;
	if (mapping)
		find_interpreter(d, mapping, outer, &to);
	else if (l->n_line && !(to.flags & FUSEE_LOCATION_REASON))
		to.frame_type = language_of(d, l);
	index = builder_location(d->b, &to, lines, (uint32_t)l->n_line);
	if (index == BUILDER_NONE) /* else a sample of it would seem damaged */
		return fail(d, -ENOMEM, "no memory");
	d->locations.at[d->locations.n++] = (struct pprof_id){.id = l->id, .index = index};
	return 0;
}

static void read_locations(struct decoder *d)
{
	if (make(d, &d->locations, d->in->n_location))
		return;
	for (size_t i = 0; i < d->in->n_location && !d->error; i++)
		read_location(d, d->in->location[i]);
	close_ids(d, &d->locations, "a location has the id 0", "two locations have the same id");
}

/* ---- samples ---- */

/* pid and tid are fields of a sample in the model. */
static bool take_number(const char *key, int64_t n, const char *want, uint32_t *to)
{
	if (strcmp(key, want) || *to || n <= 0 || n >= UINT32_MAX)
		return false;
	*to = (uint32_t)n;
	return true;
}

static int read_labels(struct decoder *d, const struct buf *labels, uint32_t *pid, uint32_t *tid)
{
	const struct pprof_label *l = (const struct pprof_label *)(const void *)labels->p;
	size_t n = labels->len / sizeof(*l);

	buf_reset(&d->labels);
	for (size_t i = 0; i < n; i++, l++) {
		const char *key = raw(d, l->key), *str = raw(d, l->str),
			   *unit = raw(d, l->num_unit);
		struct fusee_label to = {.key = {key, strlen(key)}, .num = l->num};

		if (d->error)
			return d->code;
		if (!l->str && !*unit &&
		    (take_number(key, l->num, "pid", pid) || take_number(key, l->num, "tid", tid)))
			continue;
		if (l->str)
			to.str = fusee_text(str);
		else
			to.unit = fusee_text(unit);
		if ((l->str || l->num || l->num_unit) && buf_add(&d->labels, &to, sizeof(to)))
			return fail(d, -ENOMEM, "no memory");
	}
	return 0;
}

/* The builder's index of a location; BUILDER_NONE: there is none. */
static uint32_t location_of(const struct decoder *d, uint64_t id)
{
	const struct pprof_id *l;

	if (d->counted)
		return id - 1 < d->locations.n ? d->locations.at[id - 1].index : BUILDER_NONE;
	l = pprof_ids_find(&d->locations, id);
	return l ? l->index : BUILDER_NONE;
}

static int read_stack(struct decoder *d, const struct buf *locations, struct buf *stack)
{
	const uint64_t *id = (const uint64_t *)(const void *)locations->p;
	size_t n = locations->len / sizeof(*id);
	uint32_t *to;

	buf_reset(stack);
	to = buf_grow(stack, n * sizeof(*to));
	if (!to)
		return fail(d, -ENOMEM, "no memory");
	for (size_t i = 0; i < n; i++) {
		to[i] = location_of(d, id[i]);
		if (to[i] == BUILDER_NONE)
			return fail(d, -EINVAL, "a sample's location is not in the profile");
	}
	builder_stack_soon(d->b, to, (uint32_t)n);
	return 0;
}

static int read_sample(struct decoder *d, size_t at, const uint8_t *p, size_t len)
{
	struct pprof_sample *s = &d->samples[at];
	int r = pprof_sample_read(s, p, len);

	if (r)
		return fail(d, r,
			    r == -EINVAL ? "this is not a pprof profile, or it is damaged"
					 : "no memory");
	if (s->values.len / sizeof(int64_t) != d->in->n_sample_type)
		return fail(d, -EINVAL,
			    "a sample has more or fewer values than there are sample types");
	return read_stack(d, &s->locations, &d->stacks[at]);
}

/* Whether the labels are those of the sample before: they are in most samples of many profiles. */
static bool has_labels_of_before(struct decoder *d, const struct buf *now)
{
	const struct buf *before = &d->before;

	return d->has_before && now->len == before->len &&
	       (!now->len || !memcmp(now->p, before->p, now->len));
}

static int add_values(struct decoder *d, uint32_t stack, struct pprof_sample *s)
{
	const int64_t *values = (const int64_t *)(const void *)s->values.p;
	struct buf labels = s->labels;
	uint32_t pid = 0, tid = 0;

	if (has_labels_of_before(d, &labels)) {
		builder_sample_alike(d->b, stack, values);
		return 0;
	}
	if (read_labels(d, &labels, &pid, &tid))
		return d->code;
	builder_sample(d->b, stack, (const struct fusee_label *)(const void *)d->labels.p,
		       (uint32_t)(d->labels.len / sizeof(struct fusee_label)), pid, tid, values);
	s->labels = d->before;
	d->before = labels;
	d->has_before = true;
	return 0;
}

static void add_sample(struct decoder *d, size_t at)
{
	uint64_t t = d->in->time_nanos > 0 ? (uint64_t)d->in->time_nanos : 0;
	struct pprof_sample *s = &d->samples[at];
	const int64_t *times = (const int64_t *)(const void *)s->times.p;
	const struct buf *stack = &d->stacks[at];
	uint32_t id = builder_stack(d->b, (const uint32_t *)(const void *)stack->p,
				    (uint32_t)(stack->len / sizeof(uint32_t)));

	if (add_values(d, id, s))
		return;
	for (size_t i = 0; i < s->times.len / sizeof(*times); i++) {
		t += (uint64_t)times[i];
		builder_time(d->b, t);
	}
}

/* Adds each sample when AHEAD - 1 further samples were read: by then the memory that the search for
 * its stack reads, at random places, is in the processor's caches. */
static void read_samples(struct decoder *d)
{
	const uint8_t *p;
	uint64_t len;
	size_t n = 0; /* samples that were read */

	if (d->message->nsamples && !d->in->n_sample_type) {
		fail(d, -EINVAL, "the profile has samples but no sample type");
		return;
	}
	builder_expect(d->b, d->message->nsamples);
	d->counted = true;
	for (size_t i = 0; i < d->locations.n; i++)
		d->counted &= d->locations.at[i].id == i + 1;
	while (!d->error && pprof_next_sample(d->message, &p, &len)) {
		if (n >= AHEAD)
			add_sample(d, n % AHEAD);
		if (!d->error)
			read_sample(d, n++ % AHEAD, p, len);
	}
	for (size_t i = n < AHEAD ? 0 : n - AHEAD; i < n && !d->error; i++)
		add_sample(d, i % AHEAD);
}

/* ---- the rest ---- */

static void read_types(struct decoder *d)
{
	struct fusee_profile *p = builder_profile(d->b);
	const char *default_type = raw(d, d->in->default_sample_type), *name = "";
	bool found = false;

	for (size_t i = 0; i < d->in->n_sample_type && !d->error; i++) {
		const ValueType *t = d->in->sample_type[i];
		const char *type = raw(d, t->type), *unit = raw(d, t->unit);

		builder_type(d->b, type, unit);
		if (found)
			continue;
		found = *default_type && !strcmp(type, default_type);
		p->default_type = (uint32_t)i;
		name = type;
	}
	if (d->in->period_type) {
		p->period_type = string(d, d->in->period_type->type);
		p->period_unit = string(d, d->in->period_type->unit);
	}
	p->kind = p->period_type ? p->period_type : builder_cstr(d->b, name);
	p->period = d->in->period;
	p->start_ns = d->in->time_nanos > 0 ? (uint64_t)d->in->time_nanos : 0;
	p->duration_ns = d->in->duration_nanos > 0 ? (uint64_t)d->in->duration_nanos : 0;
}

/* Before locations are read. */
static void read_interpreters(struct decoder *d)
{
	for (size_t i = 0; i < d->in->n_comment && !d->error; i++)
		if (pprof_interpreter_read(&d->interpreter, raw(d, d->in->comment[i])) < 0)
			fail(d, -ENOMEM, "no memory");
}

static void read_comments(struct decoder *d)
{
	for (size_t i = 0; i < d->in->n_comment && !d->error; i++) {
		const char *s = raw(d, d->in->comment[i]);
		enum loss_stage stage;
		const char *reason;
		int64_t n;

		if (loss_comment_read(s, &stage, &n, &reason))
			builder_loss(d->b, stage, reason, n);
		else if (!pprof_interpreter_read(&d->interpreter, s))
			builder_comment(d->b, "%s", s);
	}
}

static int convert(struct decoder *d, struct pprof_file *f)
{
	int error;

	if (read_strings(d))
		return d->code;
	raw(d, d->in->drop_frames);
	raw(d, d->in->keep_frames);
	raw(d, d->in->doc_url);
	read_types(d);
	read_mappings(d);
	read_functions(d);
	read_interpreters(d);
	if (!d->error)
		read_locations(d);
	if (!d->error)
		read_samples(d);
	if (!d->error)
		read_comments(d);
	if (d->error)
		return d->code;
	error = builder_finish(d->b, &f->profile);
	return error ? fail(d, error, "no memory") : 0;
}

int pprof_decode(const void *bytes, size_t len, struct pprof_file **ret, const char **error)
{
	return pprof_decode_within(bytes, len, PPROF_MAX_BYTES, ret, error);
}

int pprof_decode_within(const void *bytes, size_t len, uint64_t max_bytes, struct pprof_file **ret,
			const char **error)
{
	struct pprof_message m;
	struct decoder d = {0};
	struct pprof_file *f = calloc(1, sizeof(*f));

	*error = "no memory";
	if (!f || builder_new(&f->builder)) {
		free(f);
		return -ENOMEM;
	}
	d.b = f->builder;
	if (pprof_unpack(&m, bytes, len, max_bytes)) {
		fail(&d, m.code, m.error);
	} else {
		d.message = &m;
		d.in = m.profile;
		convert(&d, f);
	}
	pprof_message_free(&m);
	free(d.strings);
	free(d.mappings.at);
	free(d.functions.at);
	free(d.locations.at);
	for (size_t i = 0; i < AHEAD; i++) {
		pprof_sample_fini(&d.samples[i]);
		buf_fini(&d.stacks[i]);
	}
	buf_fini(&d.before);
	buf_fini(&d.lines);
	buf_fini(&d.labels);
	pprof_interpreter_fini(&d.interpreter);
	if (d.error) {
		pprof_free(f);
		*error = d.error;
		return d.code;
	}
	*error = "";
	*ret = f;
	return 0;
}

const struct fusee_profile *pprof_profile(const struct pprof_file *f)
{
	return f->profile;
}

uint64_t pprof_file_bytes(const struct pprof_file *f)
{
	return sizeof(*f) + builder_bytes(f->builder);
}

void pprof_free(struct pprof_file *f)
{
	if (!f)
		return;
	builder_free(f->builder);
	free(f);
}
