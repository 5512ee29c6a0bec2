/* SPDX-License-Identifier: Apache-2.0 */
/* What the page shows of a selection, as JSON, with the numbers of `fusee report`. */
#ifndef UI_VIEWS_H
#define UI_VIEWS_H

#include "base/buf.h"
#include "report/report.h"
#include "ui/internal/selection.h"

struct ui_models;

/* The profile, its base (NULL: none) and the selection. */
struct ui_view {
	const struct fusee_profile *p, *base;
	struct render_options o;
	struct ui_models *models; /* NULL: none are kept */
	/* of a profile that was added up */
	/* windows 0: it is one file; broken: cannot be read; others: have other types */
	uint64_t windows, broken, others;
	const char *types; /* ntypes names, each with its NUL, of all windows */
	uint32_t ntypes;
	struct ui_listing threads;
};

/* All append. 0; -ENOMEM; or -EINVAL with one sentence in out->p, which was empty. */

/* {types: [type..], type: the default, start, duration: ns, losses: [[stage, reason, n]..],
 * times: have samples any, windows, broken, other_types} */
int ui_about(const struct ui_view *, struct buf *out);
/* {type, unit, total, base, functions: [row..]}. A row is [name, file, line, library, kind, self,
 * total], in a comparison with self and total of the base, both z, and whether it is noise. */
int ui_table(const struct ui_view *, struct buf *out);
/* The function of the selection: {unit, total, function: row or null, callers: [[name,
 * inlined, value]..], callees: ..}. In a comparison calls have the value of the base too. */
int ui_callers(const struct ui_view *, struct buf *out);
/* {type, unit, total, base, omits, labels: [{key, n, values: [[text, value, base value]..]}..],
 * others: the number of keys that are not listed} */
int ui_labels(const struct ui_view *, struct buf *out);
/* {unit, total, compared, all, dropped, nodes: [[name, library, kind, self, total, is it noise]..],
 * edges: [[caller, callee: indices of nodes, value, inlined]..]}: the heaviest functions, and the
 * calls between them, as pprof's graph has them; in a comparison differences. `all` without the
 * `dropped`, which have less than half a percent. */
int ui_graph(const struct ui_view *, struct buf *out);
/* {type, unit, start, step: ms, steps, untimed: value without a time, tracks: [[process, thread,
 * pid, tid, total, [[step, value]..]]..], others}: what each thread did when, of a profile with
 * times; the largest. */
int ui_tracks(const struct ui_view *, struct buf *out);
/* The function of the selection: {unit, total, functions: [{name, file, library, found, self,
 * total, lines: [[number, self, total, text]..]}..]}. text null: the file was not found. In a
 * comparison with base, base_self and base_total, and self and total of the base in each line. */
int ui_source(const struct ui_view *, struct buf *out);
/* The same with {.., other_build, inlined, instructions: [[address, self, total, text, file,
 * line]..], why: NULL, or why there are no more}. In a comparison with a base of the same build
 * each also has the base's self and total. Runs objdump. */
int ui_code(const struct ui_view *, struct buf *out);
/* What is selected, as a file: pprof (of the profile alone), folded text, one page of HTML. */
int ui_share_pprof(const struct ui_view *, struct buf *out);
int ui_share_folded(const struct ui_view *, struct buf *out);
int ui_share_page(const struct ui_view *, struct buf *out);
#endif
