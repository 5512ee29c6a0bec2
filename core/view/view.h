/* SPDX-License-Identifier: Apache-2.0 */
/* The views of report and query: what a command shows of a profile, and where it writes it. */
#ifndef VIEW_VIEW_H
#define VIEW_VIEW_H

#include "console/options.h"
#include "report/report.h"

enum view_kind {
	VIEW_TOP,
	VIEW_TREE,
	VIEW_WAITS,
	VIEW_PEEK,
	VIEW_FOLDED,
	VIEW_SPEEDSCOPE,
	VIEW_FLAMEGRAPH,
	VIEW_CALLS,
	VIEW_ANNOTATE,
	VIEW_JSON
};

struct view {
	enum view_kind kind;
	const char
		*functions; /* VIEW_PEEK, VIEW_ANNOTATE: an expression that matches their names */
	const char *page;   /* VIEW_FLAMEGRAPH, VIEW_CALLS: the file */
	const char *output; /* the file of all others; NULL or "-": stdout, through a pager */
	struct render_options o;
};

/* Before profiles are read: could the file be written? An exit code, after one error was logged. */
int view_try_output(const struct view *);
/* Renders the profile, compared with base unless that is NULL, and writes it; errors name the
 * command. An exit code, after one error was logged. */
int view_show(struct view *, const struct cli_command *, const struct fusee_profile *,
	      const struct fusee_profile *base, const char *title);
#endif
