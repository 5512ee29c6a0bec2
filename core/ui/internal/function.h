/* SPDX-License-Identifier: Apache-2.0 */
/* The function that is selected. */
#ifndef UI_FUNCTION_H
#define UI_FUNCTION_H

#include "report/model.h"
#include "ui/internal/models.h"
#include "ui/internal/views.h"

struct ui_function {
	struct fusee_str name, file, library, build_id; /* name empty: there is none */
	struct fusee_str unit;
	int64_t total, base; /* of all samples */
	bool is_nameless;    /* it is all addresses of the library that have no name */
};

/* Finds the function by the name that reports show. The model is made of the view; the caller
 * closes it after 0, and the texts live as long. 0, or as render_model_make(). */
int ui_function_find(struct ui_function *, const struct ui_view *, struct ui_model *,
		     struct buf *error);
/* Whether samples have a function of a window of the store. */
struct ui_function_marks {
	const struct ui_function *f;
	struct buf functions, mappings; /* bool, by function and mapping of the window */
};

/* Before ui_function_has() of a window. 0 or -ENOMEM. */
int ui_function_begin(struct ui_function_marks *, const struct fusee_profile *);
bool ui_function_has(const struct ui_function_marks *, const struct fusee_profile *,
		     uint32_t stack);
void ui_function_end(struct ui_function_marks *);
#endif
