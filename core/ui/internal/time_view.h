/* SPDX-License-Identifier: Apache-2.0 */
/* The chart over time. */
#ifndef UI_TIME_VIEW_H
#define UI_TIME_VIEW_H

#include "ui/internal/profiles.h"

/* Sums of all profiles that begin in the span, by the values of a label: {type, unit, total, start,
 * step: ms, steps, windows, broken, other_types, groups: [[text, total, [[step, value]..]]..],
 * others: n}. A profile counts where it begins; those whose types differ from the first are counted
 * only. The largest groups are listed; a group, with the text null, is the sum of the
 * `others`. 0, or -errno with a sentence in out->p, which was empty. */
int ui_time(struct ui_profiles *, const struct ui_selection *, struct buf *out);
/* The range of time that a store is opened with: {from, to: ms}, the shortest of an hour, a day, 30
 * days until now that has a profile; {}: all. */
int ui_first_range(struct ui_profiles *, uint64_t now_ns, struct buf *out);
#endif
