/* SPDX-License-Identifier: Apache-2.0 */
/* The account of all samples due, of all samplers of a profiler. */
#ifndef SAMPLING_ACCOUNT_H
#define SAMPLING_ACCOUNT_H

#include "profiler/profiler.h"

/* The samples of a window: the samples in its collector, and the samples lost between two readings
 * of the counts. */
void profiler_account_window(const struct profiler *, const struct collector *,
			     const struct profiler_counts *before,
			     const struct profiler_counts *after, struct loss_account *);
/* Of no samples, with all reasons. */
void profiler_account_nothing(const struct profiler *, struct loss_account *);
#endif
