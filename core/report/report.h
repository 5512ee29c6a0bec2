/* SPDX-License-Identifier: Apache-2.0 */
/* Renders profiles as text and pages: what `fusee report` prints. Each function appends to a buf.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include <fusee/profile.h>

#define RENDER_MAX_WHERE 16

/* What becomes of the labels of --by in a view. */
enum render_grouping {
	RENDER_BY_ROOT, /* frames at the root of each stack, "process: bb" */
	RENDER_BY_ROW,  /* each group has functions of its own */
	RENDER_BY_SET,  /* a group is a set of all labels of a sample, as a JSON object */
};

struct render_options {
	/* Extended regular expressions that match function names; NULL: none. */
	const char *focus, *ignore, *hide;
	/* Only stacks with the function that reports show by this name; NULL: all. A label of --by
	 * is no function. */
	const char *function;
	const char *by; /* keys of labels to group by, "process,thread"; NULL: no groups */
	/* "KEY=VALUE", also with !=, =~ and !~: only samples that meet all. NULL ends them. */
	const char *where[RENDER_MAX_WHERE + 1];
	enum render_grouping grouping; /* set by the views */
	const char *type;              /* value type, NULL: the profile's default */
	uint32_t rows;                 /* of a table; 0: all */
	uint32_t width;                /* columns of the terminal, 0: no limit */
	bool cumulative;               /* top: sort by cum */
	bool balanced;    /* graph: the heaviest by flat and a part of cum, with their callers */
	bool native;      /* with interpreters' code, hidden functions */
	bool only_labels; /* stacks have no frames but the labels of --by */
	bool color;
	const char *title; /* of a page */
};

/* All return 0 or -errno; after -EINVAL out->p holds one sentence, for example about a bad regular
 * expression. base: the profile is compared with it; NULL: there is no comparison. */
int render_top(const struct fusee_profile *, const struct fusee_profile *base,
	       const struct render_options *, struct buf *out);
int render_tree(const struct fusee_profile *, const struct fusee_profile *base,
		const struct render_options *, struct buf *out);
int render_peek(const struct fusee_profile *, const struct fusee_profile *base, const char *regex,
		const struct render_options *, struct buf *out);
int render_folded(const struct fusee_profile *, const struct fusee_profile *base,
		  const struct render_options *, struct buf *out);
/* With a base it contains four profiles: the profile, the base, and the excess of each over the
 * other. */
int render_speedscope(const struct fusee_profile *, const struct fusee_profile *base,
		      const struct render_options *, struct buf *out);
int render_flamegraph(const struct fusee_profile *, const struct fusee_profile *base,
		      const struct render_options *, struct buf *out);
/* The same page for a server, which has its style and script beside it: render_flamegraph_file() of
 * "flamegraph.css" and "flamegraph.js". */
int render_flamegraph_served(const struct fusee_profile *, const struct fusee_profile *base,
			     const struct render_options *, struct buf *out);
struct fusee_str render_flamegraph_file(const char *name); /* p NULL: it has another name */
/* The graph of calls in Graphviz's language, of the hottest o->rows functions (0: 80). */
int render_dot(const struct fusee_profile *, const struct fusee_profile *base,
	       const struct render_options *, struct buf *out);
int render_json(const struct fusee_profile *, const struct fusee_profile *base,
		const struct render_options *, struct buf *out);
typedef int render_table(const struct fusee_profile *, const struct render_options *,
			 struct buf *out);
/* The hottest functions as `fusee record` prints them: self, total, name, library. */
render_table render_hottest;
/* Where threads wait, of a type that is time off the CPU: time, system call, innermost functions of
 * the program. */
render_table render_waits;
#endif
