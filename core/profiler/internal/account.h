/* SPDX-License-Identifier: Apache-2.0 */
/* What became of all samples that were due, of all samplers of a profiler. */
#ifndef SAMPLING_ACCOUNT_H
#define SAMPLING_ACCOUNT_H

#include "profiler/profiler.h"

/* The samples of a window: those that its collector has, and those that were lost between two reads
 * of the counts. */
void profiler_account_window(const struct profiler *, const struct collector *,
			     const struct profiler_counts *before,
			     const struct profiler_counts *after, struct loss_account *);
#endif
