/* SPDX-License-Identifier: Apache-2.0 */
/* What the page has selected: the query of a request for data. */
#ifndef UI_SELECTION_H
#define UI_SELECTION_H

#include <stdbool.h>

#include "base/buf.h"
#include "report/report.h"

#define UI_MAX_ADDED 32u /* files that one selection adds up */

/* from_ns <= t < to_ns, CLOCK_REALTIME. */
struct ui_range {
	uint64_t from_ns, to_ns;
};

/* The profiles of a selection, or of the base that it is compared with. */
struct ui_side {
	uint32_t files[UI_MAX_ADDED], n; /* numbers of files, in increasing order */
	bool all;                        /* n is 0: all profiles that begin in the range */
	/* of one file: the part of it with times in the range */
	struct ui_range range;
};

/* Which threads are listed: those whose names or ids contain the text, without the largest of them.
 */
struct ui_listing {
	const char *text; /* NULL: all */
	uint32_t skip;
};

struct ui_selection {
	struct ui_side now, base;
	struct ui_range span; /* of time that the chart shows */
	const char *by;       /* the label whose values it shows; NULL: none */
	struct ui_listing threads;
	struct render_options o; /* type, where, function, native */
};

/* file=N or N,N.. or all, with from=MS&to=MS; base, base_from and base_to likewise;
 * type=NAME&where=CONDITION&where=..&function=NAME&native=1&by=LABEL&span_from=MS&span_to=MS&
 * thread=TEXT&skip=N; decodes the query in place, and the texts point into it. 0, or -EINVAL with a
 * sentence in error->p. */
int ui_selection_parse(struct ui_selection *, char *query, struct buf *error);
bool ui_side_is_empty(const struct ui_side *);
#endif
