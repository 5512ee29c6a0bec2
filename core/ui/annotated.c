/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/annotated.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "profile/merge.h"
#include "report/labels.h"
#include "ui/internal/function.h"

/* The function's lines in one of the two profiles. */
struct side {
	struct builder *b; /* of the samples that the labels keep; NULL: all */
	struct annotation a;
};

/* Appends an extended regular expression that matches exactly this name. */
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

/* Copies the samples of p that have the selected labels: *ret is the copy, owned by *b. */
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

/* Adds up the function's lines in one profile. A function that the profile lacks is no error. */
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

/* ---- functions ---- */

/* A function of an interpreted language has no library: its file tells it from its namesakes. */
static bool is_selected(const struct annotated_function *f, const struct ui_function *w)
{
	return str_equal(f->library, w->library) && str_equal(f->build_id, w->build_id) &&
	       (w->library.len || str_equal(f->file, w->file));
}

/* Finds the same function in the base, which may be of another build in another folder. */
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

void ui_put_annotated(struct json *j, const struct ui_pair *p)
{
	const struct annotated_function *f = p->now ? p->now : p->before;

	json_str(j, "name", f->name);
	json_str(j, "file", f->file);
	json_str(j, "library", f->library);
	json_int(j, "self", p->now ? p->now->flat : 0);
	json_int(j, "total", p->now ? p->now->cum : 0);
	if (p->compared) {
		json_int(j, "base_self", p->before ? p->before->flat : 0);
		json_int(j, "base_total", p->before ? p->before->cum : 0);
	}
}

static void put_one(struct json *j, const struct ui_pair *p, ui_put_function *put)
{
	json_open(j, NULL);
	put(j, p);
	json_end(j);
}

static void put_functions(struct json *j, const struct side *now, const struct side *before,
			  const struct ui_function *w, bool compared, ui_put_function *put)
{
	uint32_t n = 0;

	json_open(j, NULL);
	json_str(j, "unit", w->unit);
	json_int(j, "total", w->total);
	if (compared)
		json_int(j, "base", w->base);
	json_list(j, "functions");
	for (uint32_t i = 0; i < now->a.n; i++) {
		const struct annotated_function *f = &now->a.functions[i];
		const struct ui_pair pair = {f, find_before(&before->a, f), compared};

		if (!is_selected(f, w))
			continue;
		put_one(j, &pair, put);
		n++;
	}
	/* only the base has the function */
	for (uint32_t i = 0; !n && i < before->a.n; i++)
		if (is_selected(&before->a.functions[i], w))
			put_one(j, &(struct ui_pair){NULL, &before->a.functions[i], compared}, put);
	json_end(j);
	json_end(j);
}

int ui_annotate(const struct ui_view *v, ui_put_function *put, struct buf *out)
{
	struct side now = {0}, before = {0};
	struct json j = {.out = out};
	struct buf regex = {0};
	struct ui_model m;
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
		put_functions(&j, &now, &before, &w, v->base, put);
	side_free(&now);
	side_free(&before);
	buf_fini(&regex);
	ui_model_close(&m);
	return r ? r : out->error;
}
