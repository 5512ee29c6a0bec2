/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and labels as text: what `fusee query` prints beside the views of a profile. */
#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H

#include "base/buf.h"
#include "query/label_list.h"
#include "query/sums.h"

/* All append; columns of the terminal, 0: no limit. Times are UTC. 0 or -errno. */

/* Prints time, value and a bar for each step of each group; "..": steps without a sample. */
int query_print_series(const struct sums *, uint64_t step_ns, uint32_t width, struct buf *out);
/* RFC 4180, with the values as they are in the profiles. */
int query_print_csv(const struct sums *, struct buf *out);
/* The totals of groups. */
int query_print_totals(const struct sums *, uint32_t width, struct buf *out);
/* Each label, its number of values, and the largest of them. */
int query_print_labels(const struct label_list *, uint32_t width, struct buf *out);
#endif
