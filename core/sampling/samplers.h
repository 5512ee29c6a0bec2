/* SPDX-License-Identifier: Apache-2.0 */
/* The samplers as they were chosen, opened together. */
#ifndef SAMPLING_SAMPLERS_H
#define SAMPLING_SAMPLERS_H

#include "bpf/sampler.h"
#include "events/probe.h"
#include "events/perf_stream.h"

struct samplers_options {
	enum sampler_choice choice;
	struct bpf_sampler_options bpf;
	struct perf_stream_options snapshot; /* its `bpf` is filled in */
	struct probe_target target;          /* for the sentence where the events are refused */
};

/* 0: *bpf is NULL where user space walks, with *no_bpf, malloc'ed, where that was not chosen. Else
 * an exit code of sysexits.h: what went wrong was logged, and nothing is open. */
int samplers_open(struct perf_stream **snapshot, struct bpf_sampler **bpf, char **no_bpf,
		  const struct plugin_set *, const struct samplers_options *);
#endif
