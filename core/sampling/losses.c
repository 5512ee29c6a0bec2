/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/losses.h"

#include "base/assert.h"

static void add_lost(struct loss_account *a, const struct perf_stream_counts *before,
		     const struct perf_stream_counts *after)
{
	fusee_assert(after->ring_full >= before->ring_full && after->skipped >= before->skipped);
	loss_account_add(a, LOSS_RING_FULL, after->ring_full - before->ring_full);
	loss_account_add(a, LOSS_TIMER_SKIPPED, after->skipped - before->skipped);
}

void losses_read(struct loss_account *a, struct pipeline *p, struct perf_stream *s)
{
	struct perf_stream_counts counts;
	struct pipeline_stats stats;

	pipeline_stats(p, &stats);
	perf_stream_counts(s, &counts);
	*a = *stats.account;
	add_lost(a, &(struct perf_stream_counts){0}, &counts);
}

void losses_read_window(struct loss_account *a, struct pipeline *p, const struct collector *c,
			const struct perf_stream_counts *before,
			const struct perf_stream_counts *after)
{
	struct pipeline_stats stats;

	pipeline_stats(p, &stats);
	*a = *stats.account;
	loss_account_clear(a);
	add_lost(a, before, after);
	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;

		loss_account_add(a, k->reason, c->sums[i].count);
	}
}
