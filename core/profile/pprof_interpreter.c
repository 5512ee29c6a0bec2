/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof_interpreter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BEGINNING "fusee: interpreter: "

static const struct fusee_location *location_at(const struct fusee_profile *p, uint32_t i)
{
	return FUSEE_AT(struct fusee_location, p->locations, i);
}

static struct fusee_str path_of(const struct fusee_profile *p, uint32_t mapping)
{
	return *FUSEE_AT(struct fusee_str, p->strings,
			 FUSEE_AT(struct fusee_mapping, p->mappings, mapping)->path);
}

/* The function that the location is in, whatever is inlined there. */
static struct fusee_str function_of(const struct fusee_profile *p, const struct fusee_location *l)
{
	const struct fusee_line *line;
	uint32_t name;

	if (!l->nlines)
		return (struct fusee_str){0};
	line = FUSEE_AT(struct fusee_line, p->lines, l->first_line + l->nlines - 1);
	name = FUSEE_AT(struct fusee_function, p->functions, line->function)->name;
	return *FUSEE_AT(struct fusee_str, p->strings, name);
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

int pprof_interpreter_write(const struct fusee_profile *p,
			    void (*each)(void *arg, const char *text, uint64_t len), void *arg)
{
	uint8_t *extent = extents_of(p);
	struct dict texts = {0};
	struct buf b = {0};
	int r = extent ? dict_init(&texts) : -ENOMEM;

	for (uint32_t i = 1; !r && i < p->locations.n; i++) {
		const struct fusee_location *l = location_at(p, i);
		struct fusee_str path = path_of(p, l->mapping), name = function_of(p, l);

		if (!(l->flags & FUSEE_LOCATION_INTERPRETER) || !path.len)
			continue;
		buf_reset(&b);
		buf_str(&b, BEGINNING);
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

int pprof_interpreter_read(struct pprof_interpreter *in, const char *comment)
{
	if (strncmp(comment, BEGINNING, sizeof(BEGINNING) - 1) || !comment[sizeof(BEGINNING) - 1])
		return 0;
	comment += sizeof(BEGINNING) - 1;
	if (!in->used && dict_init(&in->texts))
		return -ENOMEM;
	in->used = true;
	return dict_add(&in->texts, comment, (uint32_t)strlen(comment)) == DICT_NONE ? -ENOMEM : 1;
}

bool pprof_interpreter_has(struct pprof_interpreter *in, const char *path, const char *function)
{
	if (!in->used || !*path)
		return false;
	if (dict_find(&in->texts, path, (uint32_t)strlen(path)) != DICT_NONE)
		return true;
	buf_reset(&in->text);
	buf_printf(&in->text, "%s in %s", function, path);
	return !in->text.error &&
	       dict_find(&in->texts, in->text.p, (uint32_t)in->text.len) != DICT_NONE;
}

void pprof_interpreter_fini(struct pprof_interpreter *in)
{
	dict_fini(&in->texts);
	buf_fini(&in->text);
}
