/* SPDX-License-Identifier: Apache-2.0 */
/* Time off the CPU: what core/events sets at a BPF sampler that was opened for waits, and reads of
 * it. For one thread. */
#ifndef BPF_WAITS_H
#define BPF_WAITS_H

#include "bpf/sampler.h"

/* The keys of enum wait_result. */
extern const char *const wait_result_texts[WAIT_RESULT_COUNT];

/* From now on events of samplers are samples, by the period of each, in its unit: those of this
 * value for certain, less with the probability of the ratio. NULL, or 0: none are. Below 2^32. */
void bpf_waits_set_periods(struct bpf_sampler *, const uint64_t *periods);
/* How many samplers there are. */
uint32_t bpf_waits_samplers(const struct bpf_sampler *);
/* Makes room for further samples: to be called whenever the rings are read. */
void bpf_waits_make_room(struct bpf_sampler *);
/* Of one of them since it was opened, by enum wait_result. Zeros: it was not opened for waits. */
void bpf_waits_counts(const struct bpf_sampler *, uint32_t sampler,
		      uint64_t counts[WAIT_RESULT_COUNT]);
#endif
