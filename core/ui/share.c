/* SPDX-License-Identifier: Apache-2.0 */
/* What is selected, as files. */
#include <errno.h>

#include "pprof/pprof.h"
#include "profile/merge.h"
#include "report/labels.h"
#include "ui/internal/function.h"

/* Decides which samples a file gets: those with the selected labels and the selected function. */
struct kept {
	struct render_labels labels;
	struct ui_function function;
	struct ui_function_marks marks;
	bool has_function;
};

static bool keeps(void *arg, const struct fusee_profile *p, const struct fusee_sample *s)
{
	const struct kept *k = arg;

	return render_labels_keep(&k->labels, p, s) &&
	       (!k->has_function || ui_function_has(&k->marks, p, s->stack));
}

static int encode(struct kept *k, const struct fusee_profile *p, struct buf *out)
{
	const struct merge_choice choice = {.keep = keeps, .arg = k};
	const struct fusee_profile *selected;
	struct builder *b = NULL;
	int r = k->has_function ? ui_function_begin(&k->marks, p) : 0;

	if (!r)
		r = builder_new(&b);
	if (!r)
		r = merge_begin(b, p);
	if (!r)
		r = merge_add(b, p, &choice, NULL);
	if (!r)
		r = builder_finish(b, &selected);
	if (!r)
		r = pprof_encode(selected, true, out);
	builder_free(b);
	return r;
}

int ui_share_pprof(const struct ui_view *v, struct buf *out)
{
	struct kept k = {.has_function = v->o.function};
	struct ui_model m;
	int r;

	if (!k.has_function && !*v->o.where)
		return pprof_encode(v->p, true, out);
	r = render_labels_make(&k.labels, v->p, v->base, &v->o, out);
	if (r)
		return r;
	r = k.has_function ? ui_function_find(&k.function, v, &m, out) : 0;
	if (!r) {
		k.marks.f = &k.function;
		r = encode(&k, v->p, out);
		ui_function_end(&k.marks);
		if (k.has_function)
			ui_model_close(&m);
	}
	render_labels_free(&k.labels);
	return r;
}

int ui_share_folded(const struct ui_view *v, struct buf *out)
{
	return render_folded(v->p, v->base, &v->o, out);
}

int ui_share_page(const struct ui_view *v, struct buf *out)
{
	return render_flamegraph(v->p, v->base, &v->o, out);
}
