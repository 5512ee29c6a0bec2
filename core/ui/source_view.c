/* SPDX-License-Identifier: Apache-2.0 */
/* The source lines of the function that is selected, with their values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ui/internal/annotated.h"
#include "view/source_text.h"

#define LINES_AROUND 5u  /* before and behind the lines with values */
#define MAX_LINES 20000u /* lines of a function; a hostile profile may claim any number */
#define MAX_LINE 2000    /* bytes of a line */

/* ---- lines ---- */

static void put_line(struct json *j, uint32_t number, const struct annotated_line *l,
		     const struct annotated_line *before, const struct ui_pair *pair,
		     struct fusee_str text)
{
	json_list(j, NULL);
	json_uint(j, NULL, number);
	json_int(j, NULL, l ? l->flat : 0);
	json_int(j, NULL, l ? l->cum : 0);
	if (text.p)
		json_str(j, NULL, text);
	else
		json_text(j, NULL, NULL);
	if (pair->compared) {
		json_int(j, NULL, before ? before->flat : 0);
		json_int(j, NULL, before ? before->cum : 0);
	}
	json_end(j);
}

/* The values of a line, or NULL. *i is a cursor: lines are requested in order. */
static const struct annotated_line *line_at(const struct annotated_function *f, uint32_t *i,
					    uint32_t number)
{
	while (f && *i < f->nlines && f->lines[*i].line < number)
		++*i;
	return f && *i < f->nlines && f->lines[*i].line == number ? &f->lines[*i] : NULL;
}

static uint32_t first_line(const struct annotated_function *f)
{
	uint32_t first;

	if (!f)
		return UINT32_MAX;
	first = f->lines[f->nlines > 1 && !f->lines[0].line].line;
	return f->start_line && f->start_line < first ? f->start_line : first;
}

static uint32_t last_line(const struct annotated_function *f)
{
	return f ? f->lines[f->nlines - 1].line : 0;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void put_text(struct json *j, const struct ui_pair *p, FILE *source)
{
	uint32_t i = 0, k = 0, put = 0, first = smaller(first_line(p->now), first_line(p->before));
	uint32_t last = last_line(p->now) > last_line(p->before) ? last_line(p->now)
								 : last_line(p->before);
	char *text = NULL;
	size_t cap = 0;
	struct fusee_str line;

	for (uint64_t number = 1; number <= (uint64_t)last + LINES_AROUND && put < MAX_LINES;
	     number++) {
		if (!source_text_line(source, &text, &cap, &line))
			break;
		if (line.len > MAX_LINE)
			line.len = MAX_LINE;
		if (number + LINES_AROUND < first)
			continue;
		put_line(j, (uint32_t)number, line_at(p->now, &i, (uint32_t)number),
			 line_at(p->before, &k, (uint32_t)number), p, line);
		put++;
	}
	free(text);
}

/* Without the source file: only the lines that have values. */
static void put_numbers(struct json *j, const struct ui_pair *p)
{
	const struct annotated_function *f = p->now, *g = p->before;
	uint32_t i = 0, k = 0;

	while ((f && i < f->nlines) || (g && k < g->nlines)) {
		uint32_t number = smaller(f && i < f->nlines ? f->lines[i].line : UINT32_MAX,
					  g && k < g->nlines ? g->lines[k].line : UINT32_MAX);
		const struct annotated_line *l = line_at(f, &i, number),
					    *b = line_at(g, &k, number);

		put_line(j, number, l, b, p, (struct fusee_str){0});
		i += l != NULL;
		k += b != NULL;
	}
}

static void put_function(struct json *j, const struct ui_pair *p)
{
	const struct annotated_function *f = p->now ? p->now : p->before;
	FILE *source = last_line(f) ? source_text_open(f->file) : NULL;

	ui_put_annotated(j, p);
	json_flag(j, "found", source);
	json_list(j, "lines");
	if (source)
		put_text(j, p, source);
	else
		put_numbers(j, p);
	json_end(j);
	if (source)
		fclose(source);
}

int ui_source(const struct ui_view *v, struct buf *out)
{
	return ui_annotate(v, put_function, out);
}
