/* SPDX-License-Identifier: Apache-2.0 */
#include "dictionary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#include "names.h"

#define MAX_ATTRIBUTES 8 /* of a mapping or a location */

int dictionary_init(struct dictionary *d, const struct fusee_profile *p)
{
	*d = (struct dictionary){.p = p};
	for (enum proto_table t = 0; t < PROTO_NTABLES; t++)
		if (table_init(&d->tables[t], proto_table_field(t)))
			return -ENOMEM;
	/* one more function and location, for stacks without frames */
	d->strings = calloc((size_t)p->strings.n + 1, sizeof(uint32_t));
	d->functions = calloc((size_t)p->functions.n + 1, sizeof(uint32_t));
	d->mappings = calloc((size_t)p->mappings.n + 1, sizeof(uint32_t));
	d->locations = calloc((size_t)p->locations.n + 1, sizeof(uint32_t));
	d->stacks = calloc((size_t)p->stacks.n + 1, sizeof(uint32_t));
	return d->strings && d->functions && d->mappings && d->locations && d->stacks ? 0 : -ENOMEM;
}

void dictionary_fini(struct dictionary *d)
{
	for (enum proto_table t = 0; t < PROTO_NTABLES; t++)
		table_fini(&d->tables[t]);
	free(d->strings);
	free(d->functions);
	free(d->mappings);
	free(d->locations);
	free(d->stacks);
	fusee_bytes_fini(&d->ids);
	fusee_bytes_fini(&d->stack);
	fusee_bytes_fini(&d->location);
	fusee_bytes_fini(&d->lines);
	fusee_bytes_fini(&d->function);
	fusee_bytes_fini(&d->mapping);
	fusee_bytes_fini(&d->attribute);
	fusee_bytes_fini(&d->link);
	fusee_bytes_fini(&d->text);
}

static uint32_t add(struct dictionary *d, enum proto_table t, const struct fusee_bytes *w)
{
	if (w->error)
		d->error = w->error;
	return d->error ? 0 : table_add(&d->tables[t], w->len ? w->p : "", w->len, &d->error);
}

/* ---- texts ---- */

static bool is_ascii(const uint8_t p[8])
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return !(word & 0x8080808080808080u);
}

struct fusee_str dictionary_clean(struct fusee_bytes *clean, struct fusee_str s)
{
	const uint8_t *p = (const uint8_t *)s.p;
	uint64_t good = 0;
	uint32_t point;
	size_t n;

	while (s.len - good >= 8 && is_ascii(p + good))
		good += 8;
	while (good < s.len && (n = fusee_character(s.p + good, s.len - good, &point)))
		good += n;
	if (good == s.len)
		return s;
	fusee_bytes_reset(clean);
	fusee_bytes_add(clean, p, good);
	for (uint64_t i = good; i < s.len; i += n ? n : 1) {
		n = fusee_character(s.p + i, s.len - i, &point);
		fusee_bytes_add(clean, n ? (const char *)p + i : "\xef\xbf\xbd", n ? n : 3);
	}
	return (struct fusee_str){clean->p, clean->len};
}

static uint32_t add_text(struct dictionary *d, struct fusee_str s)
{
	if (!s.len)
		return 0;
	s = dictionary_clean(&d->text, s);
	if (d->text.error)
		d->error = d->text.error;
	return d->error ? 0 : table_add(&d->tables[PROTO_STRINGS], s.p, s.len, &d->error);
}

uint32_t dictionary_string(struct dictionary *d, uint32_t i)
{
	if (!d->strings[i])
		d->strings[i] = add_text(d, *FUSEE_AT(struct fusee_str, d->p->strings, i)) + 1;
	return d->strings[i] - 1;
}

/* ---- attributes ---- */

uint32_t dictionary_attribute(struct dictionary *d, struct fusee_str key,
			      const struct proto_value *v, struct fusee_str unit)
{
	uint32_t k = add_text(d, key), u = add_text(d, unit);
	struct proto_value clean = *v;

	if (v->kind == PROTO_TEXT)
		clean.text = dictionary_clean(&d->text, v->text);
	fusee_bytes_reset(&d->attribute);
	proto_attribute(&d->attribute, k, &clean, u);
	return add(d, PROTO_ATTRIBUTES, &d->attribute);
}

static const struct fusee_str none = {"", 0};

static uint32_t text_attribute(struct dictionary *d, const char *key, uint32_t string)
{
	struct proto_value v = {.kind = PROTO_TEXT,
				.text = *FUSEE_AT(struct fusee_str, d->p->strings, string)};

	return dictionary_attribute(d, fusee_text(key), &v, none);
}

/* Appends a true attribute for each bit in `flags`. Returns their number. */
struct flag_name {
	uint32_t flag;
	const char *key;
};

static uint32_t flag_attributes(struct dictionary *d, uint32_t flags, const struct flag_name *names,
				uint32_t n, uint32_t *to)
{
	struct proto_value yes = {.kind = PROTO_TRUE};
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		if (flags & names[i].flag)
			to[count++] = dictionary_attribute(d, fusee_text(names[i].key), &yes, none);
	return count;
}

/* ---- code ---- */

static uint32_t mapping(struct dictionary *d, uint32_t i)
{
	static const struct flag_name flags[] = {
		{FUSEE_MAPPING_FUNCTIONS, "pprof.mapping.has_functions"},
		{FUSEE_MAPPING_FILENAMES, "pprof.mapping.has_filenames"},
		{FUSEE_MAPPING_LINES, "pprof.mapping.has_line_numbers"},
		{FUSEE_MAPPING_INLINES, "pprof.mapping.has_inline_frames"},
	};
	const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, d->p->mappings, i);
	uint32_t attributes[MAX_ATTRIBUTES], n = 0;

	if (d->mappings[i])
		return d->mappings[i] - 1;
	if (FUSEE_AT(struct fusee_str, d->p->strings, m->build_id)->len)
		attributes[n++] = text_attribute(d, NAME_BUILD_ID, m->build_id);
	n += flag_attributes(d, m->flags, flags, sizeof(flags) / sizeof(flags[0]), attributes + n);
	fusee_bytes_reset(&d->mapping);
	proto_mapping(&d->mapping, &(struct proto_mapping){m->start,
							   m->limit,
							   m->offset,
							   dictionary_string(d, m->path),
							   {attributes, n}});
	d->mappings[i] = add(d, PROTO_MAPPINGS, &d->mapping) + 1;
	return d->mappings[i] - 1;
}

static uint32_t add_function(struct dictionary *d, const struct proto_function *f)
{
	fusee_bytes_reset(&d->function);
	proto_function(&d->function, f);
	return add(d, PROTO_FUNCTIONS, &d->function);
}

static uint32_t function(struct dictionary *d, uint32_t i)
{
	const struct fusee_function *f = FUSEE_AT(struct fusee_function, d->p->functions, i);
	uint32_t name = f->name ? f->name : f->system_name;

	if (!d->functions[i])
		d->functions[i] =
			1 +
			add_function(d, &(struct proto_function){
						dictionary_string(d, name),
						dictionary_string(d, f->system_name ? f->system_name
										    : name),
						dictionary_string(d, f->file), f->start_line});
	return d->functions[i] - 1;
}

/* The location of a stack without frames, and of a frame without a location. */
static uint32_t unknown_location(struct dictionary *d)
{
	struct fusee_str text = FUSEE_TEXT("[unknown]");
	uint32_t name = add_text(d, text);
	struct proto_line line = {
		.function = add_function(d, &(struct proto_function){name, name, 0, 0})};

	fusee_bytes_reset(&d->location);
	proto_location(&d->location, &(struct proto_location){.nlines = 1, .lines = &line});
	return add(d, PROTO_LOCATIONS, &d->location);
}

static uint32_t add_location(struct dictionary *d, const struct fusee_location *l)
{
	static const struct flag_name flags[] = {
		{FUSEE_LOCATION_GUESSED, "fusee.frame.guessed"},
		{FUSEE_LOCATION_INTERPRETER, "fusee.frame.interpreter"},
	};
	uint32_t attributes[MAX_ATTRIBUTES], n = 0, count = 0;
	struct proto_location to = {.address = l->address, .mapping = mapping(d, l->mapping)};
	struct proto_line *lines;

	fusee_bytes_reset(&d->lines);
	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct fusee_line *from = FUSEE_AT(struct fusee_line, d->p->lines,
							 l->first_line + i);
		struct proto_line line = {.line = from->line, .column = from->column};

		if (!from->function)
			continue;
		line.function = function(d, from->function);
		fusee_bytes_add(&d->lines, &line, sizeof(line));
		count++;
	}
	lines = (struct proto_line *)(void *)d->lines.p;
	if (d->lines.error)
		d->error = d->lines.error;
	if (l->frame_type)
		attributes[n++] = text_attribute(d, NAME_FRAME_TYPE, l->frame_type);
	n += flag_attributes(d, l->flags, flags, sizeof(flags) / sizeof(flags[0]), attributes + n);
	to.lines = lines;
	to.nlines = d->error ? 0 : count;
	to.attributes = (struct proto_indexes){attributes, n};
	fusee_bytes_reset(&d->location);
	proto_location(&d->location, &to);
	return add(d, PROTO_LOCATIONS, &d->location);
}

static uint32_t location(struct dictionary *d, uint32_t i)
{
	if (d->locations[i])
		return d->locations[i] - 1;
	d->locations[i] = 1 +
			  (i ? add_location(d, FUSEE_AT(struct fusee_location, d->p->locations, i))
			     : unknown_location(d));
	return d->locations[i] - 1;
}

/* The numbers of the stack's locations; valid until the next call. */
static struct proto_indexes stack_locations(struct dictionary *d, const struct fusee_stack *s)
{
	uint32_t n = s->n ? s->n : 1, *to, i;

	fusee_bytes_reset(&d->ids);
	if (!fusee_bytes_reserve(&d->ids, n * sizeof(*to))) {
		d->error = d->ids.error;
		return (struct proto_indexes){0};
	}
	to = (uint32_t *)(void *)d->ids.p;
	if (!s->n)
		to[0] = location(d, 0);
	for (uint32_t k = 0; k < s->n; k++) {
		i = *FUSEE_AT(uint32_t, d->p->stack_locations, s->first + k);
		to[k] = d->locations[i] ? d->locations[i] - 1 : location(d, i);
	}
	return (struct proto_indexes){to, n};
}

uint32_t dictionary_stack(struct dictionary *d, uint32_t i)
{
	const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, d->p->stacks, i);

	if (d->stacks[i])
		return d->stacks[i] - 1;
	fusee_bytes_reset(&d->stack);
	proto_stack(&d->stack, stack_locations(d, s));
	d->stacks[i] = add(d, PROTO_STACKS, &d->stack) + 1;
	return d->stacks[i] - 1;
}

uint32_t dictionary_link(struct dictionary *d, const struct fusee_sample *s)
{
	if (!s->span_id && !s->trace_id[0] && !s->trace_id[1])
		return 0;
	fusee_bytes_reset(&d->link);
	proto_link(&d->link, s->trace_id, s->span_id);
	return add(d, PROTO_LINKS, &d->link);
}

void dictionary_write(const struct dictionary *d, struct fusee_bytes *w)
{
	size_t len = 0;

	for (enum proto_table t = 0; t < PROTO_NTABLES; t++)
		len += d->tables[t].fields.len;
	proto_begin_dictionary(w, len);
	fusee_bytes_reserve(w, len);
	for (enum proto_table t = 0; t < PROTO_NTABLES; t++)
		fusee_bytes_add(w, d->tables[t].fields.p, d->tables[t].fields.len);
}
