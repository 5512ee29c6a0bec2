/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/internal/interpreter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/omit.h"
#include "pprof/internal/flags.h"
#include "profile/str.h"

#define BEGINNING "fusee: interpreter"
#define LANGUAGE "fusee: language: "

static const struct fusee_location *location_at(const struct fusee_profile *p, uint32_t i)
{
	return FUSEE_AT(struct fusee_location, p->locations, i);
}

static struct fusee_str path_of(const struct fusee_profile *p, uint32_t mapping)
{
	return str_at(p, FUSEE_AT(struct fusee_mapping, p->mappings, mapping)->path);
}

/* The function that has the location's code, not an inlined function. */
static struct fusee_str function_of(const struct fusee_profile *p, const struct fusee_location *l)
{
	const struct fusee_line *line;
	uint32_t name;

	if (!l->nlines)
		return (struct fusee_str){0};
	line = FUSEE_AT(struct fusee_line, p->lines, l->first_line + l->nlines - 1);
	name = FUSEE_AT(struct fusee_function, p->functions, line->function)->name;
	return str_at(p, name);
}

uint32_t pprof_interpreter_most(const struct fusee_profile *p, bool *several)
{
	uint32_t language[OMIT_LANGUAGES], count[OMIT_LANGUAGES], n = 0, most = 0;

	for (uint32_t i = 1; i < p->locations.n; i++) {
		const struct fusee_location *l = location_at(p, i);
		uint32_t k = 0;

		if (!omit_is_language(l) || !l->frame_type)
			continue;
		while (k < n && language[k] != l->frame_type)
			k++;
		if (k == OMIT_LANGUAGES)
			continue;
		if (k == n) {
			language[n] = l->frame_type;
			count[n++] = 0;
		}
		count[k]++;
	}
	for (uint32_t k = 1; k < n; k++)
		if (count[k] > count[most])
			most = k;
	if (several)
		*several = n > 1;
	return n ? language[most] : 0;
}

enum extent { NO_LOCATION, SOME_LOCATIONS, ALL_LOCATIONS };

/* By mapping: how many of its locations have the flag. NULL: no memory. */
static uint8_t *extents_of(const struct fusee_profile *p)
{
	uint8_t *extent = calloc(p->mappings.n + 1, 1);
	bool *other = calloc(p->mappings.n + 1, sizeof(*other));

	for (uint32_t i = 1; extent && other && i < p->locations.n; i++) {
		const struct fusee_location *l = location_at(p, i);

		if (l->flags & FUSEE_LOCATION_INTERPRETER)
			extent[l->mapping] = ALL_LOCATIONS;
		else
			other[l->mapping] = true;
	}
	for (uint32_t i = 0; extent && other && i < p->mappings.n; i++)
		if (extent[i] && other[i])
			extent[i] = SOME_LOCATIONS;
	if (!other) {
		free(extent);
		extent = NULL;
	}
	free(other);
	return extent;
}

/* Calls each() for a text that is new. */
static int put(struct dict *texts, const struct buf *b,
	       void (*each)(void *arg, const char *text, uint64_t len), void *arg)
{
	uint32_t before = texts->n;

	if (b->error || dict_add(texts, b->p, b->len) == DICT_NONE)
		return -ENOMEM;
	if (texts->n > before)
		each(arg, b->p, b->len);
	return 0;
}

/* "fusee: interpreter of cpython: " */
static void begin_comment(struct buf *b, struct fusee_str language)
{
	buf_reset(b);
	buf_str(b, BEGINNING);
	if (pprof_flags_takes(language)) {
		buf_str(b, " of ");
		buf_add(b, language.p, language.len);
	}
	buf_str(b, ": ");
}

static int put_language(const struct fusee_profile *p, struct dict *texts, struct buf *b,
			void (*each)(void *arg, const char *text, uint64_t len), void *arg)
{
	struct fusee_str language = str_at(p, pprof_interpreter_most(p, NULL));

	if (!pprof_flags_takes(language))
		return 0;
	buf_str(b, LANGUAGE);
	buf_add(b, language.p, language.len);
	return put(texts, b, each, arg);
}

int pprof_interpreter_write(const struct fusee_profile *p,
			    void (*each)(void *arg, const char *text, uint64_t len), void *arg)
{
	uint8_t *extent = extents_of(p);
	struct dict texts = {0};
	struct buf b = {0};
	int r = extent ? dict_init(&texts) : -ENOMEM;

	if (!r)
		r = put_language(p, &texts, &b, each, arg);
	for (uint32_t i = 1; !r && i < p->locations.n; i++) {
		const struct fusee_location *l = location_at(p, i);
		struct fusee_str path = path_of(p, l->mapping), name = function_of(p, l);

		if (!(l->flags & FUSEE_LOCATION_INTERPRETER) || !path.len)
			continue;
		begin_comment(&b, str_at(p, l->language));
		if (extent[l->mapping] == SOME_LOCATIONS) {
			if (!name.len)
				continue;
			buf_add(&b, name.p, name.len);
			buf_str(&b, " in ");
		}
		buf_add(&b, path.p, path.len);
		r = put(&texts, &b, each, arg);
	}
	dict_fini(&texts);
	buf_fini(&b);
	free(extent);
	return r;
}

/* Remembers an interpreter's language. False: there are too many. */
static bool add_language(struct pprof_interpreter *in, const char *text, size_t len)
{
	uint32_t i = 0;

	while (i < in->nlanguages && (in->lens[i] != len || memcmp(in->languages[i], text, len)))
		i++;
	if (i == PPROF_INTERPRETER_LANGUAGES)
		return false;
	if (i < in->nlanguages)
		return true;
	in->languages[i] = text;
	in->lens[i] = (uint32_t)len;
	in->nlanguages++;
	return true;
}

static int read_language(struct pprof_interpreter *in, const char *text)
{
	if (!pprof_flags_takes(fusee_text(text)))
		return 0;
	in->language = in->language && strcmp(in->language, text) ? "" : text;
	return 1;
}

/* text: " of cpython: X" or ": X". Is it of this form? */
static bool read_interpreter(struct pprof_interpreter *in, const char *text)
{
	const char *colon = strchr(text, ':');

	if (!colon || colon[1] != ' ' || !colon[2])
		return false;
	if (colon == text)
		return add_language(in, "", 0);
	return !strncmp(text, " of ", 4) &&
	       pprof_flags_takes((struct fusee_str){text + 4, (uint64_t)(colon - text - 4)}) &&
	       add_language(in, text + 4, (size_t)(colon - text - 4));
}

int pprof_interpreter_read(struct pprof_interpreter *in, const char *comment)
{
	if (!strncmp(comment, LANGUAGE, sizeof(LANGUAGE) - 1))
		return read_language(in, comment + sizeof(LANGUAGE) - 1);
	if (strncmp(comment, BEGINNING, sizeof(BEGINNING) - 1) ||
	    !read_interpreter(in, comment + sizeof(BEGINNING) - 1))
		return 0;
	if (!in->used && dict_init(&in->texts))
		return -ENOMEM;
	in->used = true;
	return dict_add(&in->texts, comment, (uint32_t)strlen(comment)) == DICT_NONE ? -ENOMEM : 1;
}

static bool has_text(struct pprof_interpreter *in)
{
	return !in->text.error &&
	       dict_find(&in->texts, in->text.p, (uint32_t)in->text.len) != DICT_NONE;
}

bool pprof_interpreter_has(struct pprof_interpreter *in, const char *path, const char *function,
			   struct fusee_str *language)
{
	if (!in->used || !*path)
		return false;
	for (uint32_t i = 0; i < in->nlanguages; i++) {
		*language = (struct fusee_str){in->languages[i], in->lens[i]};
		begin_comment(&in->text, *language);
		buf_str(&in->text, path);
		if (has_text(in))
			return true;
		begin_comment(&in->text, *language);
		buf_printf(&in->text, "%s in %s", function, path);
		if (has_text(in))
			return true;
	}
	return false;
}

void pprof_interpreter_fini(struct pprof_interpreter *in)
{
	dict_fini(&in->texts);
	buf_fini(&in->text);
}
