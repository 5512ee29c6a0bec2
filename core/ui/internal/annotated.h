/* SPDX-License-Identifier: Apache-2.0 */
/* The function of the selection with its values by line and by address. */
#ifndef UI_ANNOTATED_H
#define UI_ANNOTATED_H

#include "base/json.h"
#include "annotation/annotation.h"
#include "ui/internal/views.h"

/* A function in one or both profiles; NULL: the profile does not have it. */
struct ui_pair {
	const struct annotated_function *now, *before;
	bool compared;
};

/* Writes members of a function's object. */
typedef void ui_put_function(struct json *, const struct ui_pair *);

/* {unit, total, base, functions: [{what put() writes}..]}: the function in each of its source files
 * and builds. As the functions of views.h. */
int ui_annotate(const struct ui_view *, ui_put_function *put, struct buf *out);
/* name, file, library, self, total, in a comparison base_self and base_total. */
void ui_put_annotated(struct json *, const struct ui_pair *);
#endif
