/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/function.h"

#include <errno.h>

#include "base/str.h"
#include "profile/str.h"

int ui_function_find(struct ui_function *w, const struct ui_view *v, struct ui_model *model,
		     struct buf *error)
{
	int r = ui_model_open(model, v, &v->o, error);
	const struct render_model *m = model->m;

	if (r)
		return r;
	*w = (struct ui_function){.unit = m->unit, .total = m->total, .base = m->base_total};
	for (uint32_t i = 0; v->o.function && i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];

		if (f->code != RENDER_LABEL && fusee_text_is(f->shown, v->o.function)) {
			w->name = f->name;
			w->file = f->file;
			w->library = f->library;
			w->build_id = f->build_id;
			w->is_nameless = f->is_nameless;
		}
	}
	return 0;
}

/* ---- in windows ---- */

int ui_function_begin(struct ui_function_marks *k, const struct fusee_profile *p)
{
	bool has;

	buf_reset(&k->functions);
	buf_reset(&k->mappings);
	for (uint32_t i = 0; i < p->functions.n; i++) {
		const struct fusee_function *f = FUSEE_AT(struct fusee_function, p->functions, i);

		/* a function of an interpreted language has no library: its file tells it from its
		 * namesakes */
		has = str_equal(str_at(p, f->name), k->f->name) &&
		      (k->f->library.len || str_equal(str_at(p, f->file), k->f->file));
		buf_add(&k->functions, &has, sizeof(has));
	}
	for (uint32_t i = 0; i < p->mappings.n; i++) {
		const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, p->mappings, i);

		has = !k->f->library.len || str_equal(str_at(p, m->path), k->f->library);
		buf_add(&k->mappings, &has, sizeof(has));
	}
	return k->functions.error ? k->functions.error : k->mappings.error;
}

static bool is_in(const struct ui_function_marks *k, const struct fusee_profile *p,
		  const struct fusee_location *l)
{
	const bool *functions = (const bool *)k->functions.p;

	if (l->mapping < p->mappings.n ? !((const bool *)k->mappings.p)[l->mapping]
				       : k->f->library.len != 0)
		return false;
	if (k->f->is_nameless)
		return !l->nlines;
	for (uint32_t i = 0; i < l->nlines; i++)
		if (functions[FUSEE_AT(struct fusee_line, p->lines, l->first_line + i)->function])
			return true;
	return false;
}

bool ui_function_has(const struct ui_function_marks *k, const struct fusee_profile *p,
		     uint32_t stack)
{
	const struct fusee_stack *s = FUSEE_AT(struct fusee_stack, p->stacks, stack);

	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t at = *FUSEE_AT(uint32_t, p->stack_locations, s->first + i);

		if (is_in(k, p, FUSEE_AT(struct fusee_location, p->locations, at)))
			return true;
	}
	return false;
}

void ui_function_end(struct ui_function_marks *k)
{
	buf_fini(&k->functions);
	buf_fini(&k->mappings);
}
