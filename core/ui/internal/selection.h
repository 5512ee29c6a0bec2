/* SPDX-License-Identifier: Apache-2.0 */
/* What the page has selected: the query of a request for data. */
#ifndef UI_SELECTION_H
#define UI_SELECTION_H

#include "base/buf.h"
#include "report/report.h"

#define UI_NO_FILE UINT32_MAX

struct ui_selection {
	uint32_t file, base;     /* UI_NO_FILE: none */
	struct render_options o; /* type, where, function, native */
};

/* file=N&base=N&type=NAME&where=CONDITION&where=..&function=NAME&native=1; decodes the query in
 * place, and the texts point into it. 0, or -EINVAL with a sentence in error->p. */
int ui_selection_parse(struct ui_selection *, char *query, struct buf *error);
#endif
