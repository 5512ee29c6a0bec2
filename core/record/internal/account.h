/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a recording, for its summary and its hints. */
#ifndef RECORD_ACCOUNT_H
#define RECORD_ACCOUNT_H

#include "record/session.h"

/* What became of all samples that were due. */
struct session_account {
	struct loss_account losses;
	struct perf_stream_counts counts;
	struct stop_counts stop;
	struct pipeline_stats stats;
	uint64_t period_ns; /* of another event than CPU time: a number of events */
};

void session_account(struct session *, struct session_account *);
#endif
