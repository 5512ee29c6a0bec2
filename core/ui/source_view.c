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
#include "ui/internal/views.h"
#include "view/source_text.h"

#define LINES_AROUND 5u  /* before and behind the lines with values */
#define MAX_LINES 20000u /* of a function: a hostile profile may span a file of any size */
#define MAX_LINE 2000    /* bytes */

/* The function of the model, found by its shown name. */
struct selected {
	struct fusee_str name, file, library, build_id;
	struct fusee_str unit;
	int64_t total; /* of all samples */
};

static int find_selected(struct selected *w, const struct ui_view *v, struct render_model *m,
			 struct buf *error)
{
	int r = render_model_make(m, v->p, NULL, &v->o, error);

	if (r)
		return r;
	*w = (struct selected){.unit = m->unit, .total = m->total};
	for (uint32_t i = 0; v->o.function && i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];

		if (f->code != RENDER_LABEL && fusee_text_is(f->shown, v->o.function)) {
			w->name = f->name;
			w->file = f->file;
			w->library = f->library;
			w->build_id = f->build_id;
		}
	}
	return 0;
}

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

/* The samples that the selected labels keep. */
static int filter(const struct ui_view *v, struct builder **b, const struct fusee_profile **ret,
		  struct buf *error)
{
	struct render_labels labels;
	const struct merge_choice choice = {.keep = keep, .arg = &labels};
	int r = render_labels_make(&labels, v->p, NULL, &v->o, error);

	if (r)
		return r;
	r = builder_new(b);
	if (!r)
		r = merge_begin(*b, v->p);
	if (!r)
		r = merge_add(*b, v->p, &choice, NULL);
	if (!r)
		r = builder_finish(*b, ret);
	render_labels_free(&labels);
	return r;
}

static void put_line(struct json *j, uint32_t number, const struct annotated_line *l,
		     const char *text, size_t n)
{
	json_list(j, NULL);
	json_uint(j, NULL, number);
	json_int(j, NULL, l ? l->flat : 0);
	json_int(j, NULL, l ? l->cum : 0);
	if (text)
		json_str(j, NULL, (struct fusee_str){text, n < MAX_LINE ? n : MAX_LINE});
	else
		json_text(j, NULL, NULL);
	json_end(j);
}

static const struct annotated_line *line_at(const struct annotated_function *f, uint32_t *i,
					    uint32_t number)
{
	while (*i < f->nlines && f->lines[*i].line < number)
		++*i;
	return *i < f->nlines && f->lines[*i].line == number ? &f->lines[*i] : NULL;
}

static void put_text(struct json *j, const struct annotated_function *f, FILE *source)
{
	uint32_t i = 0, put = 0, first = f->lines[f->nlines > 1 && !f->lines[0].line].line;
	uint64_t last = (uint64_t)f->lines[f->nlines - 1].line + LINES_AROUND;
	char *text = NULL;
	size_t cap = 0;
	ssize_t n;

	if (f->start_line && f->start_line < first)
		first = f->start_line;
	for (uint32_t number = 1; number <= last && put < MAX_LINES; number++) {
		n = getline(&text, &cap, source);
		if (n < 0)
			break;
		while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
			n--;
		if (number + LINES_AROUND < first)
			continue;
		put_line(j, number, line_at(f, &i, number), text, (size_t)n);
		put++;
	}
	free(text);
}

static void put_function(struct json *j, const struct annotated_function *f)
{
	FILE *source = f->lines[f->nlines - 1].line ? source_text_open(f->file) : NULL;

	json_open(j, NULL);
	json_str(j, "name", f->name);
	json_str(j, "file", f->file);
	json_str(j, "library", f->library);
	json_flag(j, "found", source);
	json_int(j, "self", f->flat);
	json_int(j, "total", f->cum);
	json_list(j, "lines");
	if (source)
		put_text(j, f, source);
	for (uint32_t i = 0; !source && i < f->nlines; i++)
		put_line(j, f->lines[i].line, &f->lines[i], NULL, 0);
	json_end(j);
	json_end(j);
	if (source)
		fclose(source);
}

/* A language's function has no library: its file tells it from others of its name. */
static bool is_selected(const struct annotated_function *f, const struct selected *w)
{
	return str_equal(f->library, w->library) && str_equal(f->build_id, w->build_id) &&
	       (w->library.len || str_equal(f->file, w->file));
}

static void put_functions(struct json *j, const struct annotation *a, const struct selected *w)
{
	json_open(j, NULL);
	json_str(j, "unit", w->unit);
	json_int(j, "total", w->total);
	json_list(j, "functions");
	for (uint32_t i = 0; i < a->n; i++)
		if (is_selected(&a->functions[i], w))
			put_function(j, &a->functions[i]);
	json_end(j);
	json_end(j);
}

int ui_source(const struct ui_view *v, struct buf *out)
{
	const struct fusee_profile *kept = NULL;
	struct builder *b = NULL;
	struct annotation a = {0};
	struct json j = {.out = out};
	struct buf regex = {0};
	struct render_model m;
	struct selected w;
	int r = find_selected(&w, v, &m, out);

	if (r)
		return r;
	r = quote(&regex, w.name);
	if (!r)
		r = filter(v, &b, &kept, out);
	if (!r && w.name.len)
		r = annotation_make(&a, kept, regex.p, v->o.type, out);
	if (r == -ENOENT) { /* a function without lines */
		buf_reset(out);
		r = 0;
	}
	if (!r)
		put_functions(&j, &a, &w);
	annotation_free(&a);
	builder_free(b);
	buf_fini(&regex);
	render_model_free(&m);
	return r ? r : out->error;
}
