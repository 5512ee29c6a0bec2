/* SPDX-License-Identifier: Apache-2.0 */
/* The source lines of the function that is selected, with their values. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/saturate.h"
#include "base/str.h"
#include "profile/merge.h"
#include "report/annotation.h"
#include "report/labels.h"
#include "report/model.h"
#include "ui/internal/function.h"
#include "ui/internal/views.h"
#include "view/source_text.h"

#define LINES_AROUND 5u  /* before and behind the lines with values */
#define MAX_LINES 20000u /* of a function: a hostile profile may span a file of any size */
#define MAX_LINE 2000    /* bytes */

/* The function's lines in one of the two profiles. */
struct side {
	struct builder *b; /* of the samples that the labels keep; NULL: all */
	struct annotation a;
};

/* An extended regular expression that matches the name alone. */
static int quote(struct buf *to, struct fusee_str name)
{
	buf_str(to, "^");
	for (uint64_t i = 0; i < name.len; i++) {
		if (name.p[i] && strchr(".^$*+?()[{\\|", name.p[i]))
			buf_str(to, "\\");
		buf_add(to, &name.p[i], 1);
	}
	buf_str(to, "$");
	buf_add(to, "", 1);
	return to->error;
}

static bool keep(void *arg, const struct fusee_profile *p, const struct fusee_sample *s)
{
	return render_labels_keep(arg, p, s);
}

/* The samples of p that the selected labels keep. */
static int filter(const struct ui_view *v, const struct fusee_profile *p, struct builder **b,
		  const struct fusee_profile **ret, struct buf *error)
{
	struct render_labels labels;
	const struct merge_choice choice = {.keep = keep, .arg = &labels};
	int r = render_labels_make(&labels, v->p, v->base, &v->o, error);

	if (r)
		return r;
	r = builder_new(b);
	if (!r)
		r = merge_begin(*b, p);
	if (!r)
		r = merge_add(*b, p, &choice, NULL);
	if (!r)
		r = builder_finish(*b, ret);
	render_labels_free(&labels);
	return r;
}

/* A function without lines is no error. */
static int side_make(struct side *s, const struct ui_view *v, const struct fusee_profile *p,
		     const char *regex, struct buf *error)
{
	int r = *v->o.where ? filter(v, p, &s->b, &p, error) : 0;

	if (!r)
		r = annotation_make(&s->a, p, regex, v->o.type, error);
	if (r != -ENOENT)
		return r;
	buf_reset(error);
	return 0;
}

static void side_free(struct side *s)
{
	annotation_free(&s->a);
	builder_free(s->b);
}

/* ---- lines ---- */

/* A function in one or both profiles; NULL: the profile does not have it. */
struct pair {
	const struct annotated_function *now, *before;
	bool compared;
};

static void put_line(struct json *j, uint32_t number, const struct annotated_line *l,
		     const struct annotated_line *before, const struct pair *pair,
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

/* The values of a line; *i goes on from line to line. */
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

static void put_text(struct json *j, const struct pair *p, FILE *source)
{
	uint32_t i = 0, k = 0, put = 0, first = smaller(first_line(p->now), first_line(p->before));
	uint32_t last = last_line(p->now) > last_line(p->before) ? last_line(p->now)
								 : last_line(p->before);
	char *text = NULL;
	size_t cap = 0;
	ssize_t n;

	for (uint64_t number = 1; number <= (uint64_t)last + LINES_AROUND && put < MAX_LINES;
	     number++) {
		n = getline(&text, &cap, source);
		if (n < 0)
			break;
		while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
			n--;
		if (number + LINES_AROUND < first)
			continue;
		put_line(j, (uint32_t)number, line_at(p->now, &i, (uint32_t)number),
			 line_at(p->before, &k, (uint32_t)number), p,
			 (struct fusee_str){text, n < MAX_LINE ? (uint64_t)n : MAX_LINE});
		put++;
	}
	free(text);
}

/* The lines with values alone, if the source file was not found. */
static void put_numbers(struct json *j, const struct pair *p)
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

static void put_function(struct json *j, const struct pair *p)
{
	const struct annotated_function *f = p->now ? p->now : p->before;
	FILE *source = last_line(f) ? source_text_open(f->file) : NULL;

	json_open(j, NULL);
	json_str(j, "name", f->name);
	json_str(j, "file", f->file);
	json_str(j, "library", f->library);
	json_flag(j, "found", source);
	json_int(j, "self", p->now ? p->now->flat : 0);
	json_int(j, "total", p->now ? p->now->cum : 0);
	if (p->compared) {
		json_int(j, "base_self", p->before ? p->before->flat : 0);
		json_int(j, "base_total", p->before ? p->before->cum : 0);
	}
	json_list(j, "lines");
	if (source)
		put_text(j, p, source);
	else
		put_numbers(j, p);
	json_end(j);
	json_end(j);
	if (source)
		fclose(source);
}

/* ---- functions ---- */

/* A language's function has no library: its file tells it from others of its name. */
static bool is_selected(const struct annotated_function *f, const struct ui_function *w)
{
	return str_equal(f->library, w->library) && str_equal(f->build_id, w->build_id) &&
	       (w->library.len || str_equal(f->file, w->file));
}

/* The same function of the base, which may be another build in another folder. */
static const struct annotated_function *find_before(const struct annotation *a,
						    const struct annotated_function *f)
{
	const struct annotated_function *found = NULL;

	for (uint32_t i = 0; i < a->n; i++) {
		const struct annotated_function *g = &a->functions[i];

		if (!str_equal(str_base_name(g->file), str_base_name(f->file)))
			continue;
		if (!found ||
		    (!str_equal(found->library, f->library) && str_equal(g->library, f->library)))
			found = g;
	}
	return found;
}

static void put_functions(struct json *j, const struct side *now, const struct side *before,
			  const struct ui_function *w, bool compared)
{
	uint32_t put = 0;

	json_open(j, NULL);
	json_str(j, "unit", w->unit);
	json_int(j, "total", w->total);
	if (compared)
		json_int(j, "base", w->base);
	json_list(j, "functions");
	for (uint32_t i = 0; i < now->a.n; i++) {
		const struct annotated_function *f = &now->a.functions[i];
		const struct pair pair = {f, find_before(&before->a, f), compared};

		if (!is_selected(f, w))
			continue;
		put_function(j, &pair);
		put++;
	}
	/* it has vanished */
	for (uint32_t i = 0; !put && i < before->a.n; i++)
		if (is_selected(&before->a.functions[i], w))
			put_function(j, &(struct pair){NULL, &before->a.functions[i], compared});
	json_end(j);
	json_end(j);
}

int ui_source(const struct ui_view *v, struct buf *out)
{
	struct side now = {0}, before = {0};
	struct json j = {.out = out};
	struct buf regex = {0};
	struct render_model m;
	struct ui_function w;
	int r = ui_function_find(&w, v, &m, out);

	if (r)
		return r;
	r = quote(&regex, w.name);
	if (!r && w.name.len)
		r = side_make(&now, v, v->p, regex.p, out);
	if (!r && w.name.len && v->base)
		r = side_make(&before, v, v->base, regex.p, out);
	if (!r)
		put_functions(&j, &now, &before, &w, v->base);
	side_free(&now);
	side_free(&before);
	buf_fini(&regex);
	render_model_free(&m);
	return r ? r : out->error;
}
