/* SPDX-License-Identifier: Apache-2.0 */
/* What the options say of hits of probes, alone or beside CPU time. */
#ifndef PROFILER_HITS_H
#define PROFILER_HITS_H

#include "profiler/profiler.h"

/* Only hits are sampled. */
bool hits_alone(const struct profiler_options *);
/* Their part of the options of the BPF sampler, and of the stream. */
void hits_set_bpf(const struct profiler_options *, struct bpf_sampler_options *);
void hits_set_stream(const struct profiler_options *, struct perf_stream_options *);
#endif
