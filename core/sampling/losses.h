/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the account of losses (profile/loss.h) from the perf stream, the pipeline and a
 * collector. */
#ifndef SAMPLING_LOSSES_H
#define SAMPLING_LOSSES_H

#include "events/perf_stream.h"
#include "profile/loss.h"
#include "sampling/collector.h"
#include "sampling/pipeline.h"

/* All samples since both were opened. No figure falls from one read to the next. */
void losses_read(struct loss_account *, struct pipeline *, struct perf_stream *);
/* The samples of one window: those that its collector has, and those that were lost between two
 * reads of the perf stream. */
void losses_read_window(struct loss_account *, struct pipeline *, const struct collector *,
			const struct perf_stream_counts *before,
			const struct perf_stream_counts *after);
#endif
