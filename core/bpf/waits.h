/* SPDX-License-Identifier: Apache-2.0 */
/* Time off the CPU: what core/events sets at a BPF sampler that was opened for waits, and reads of
 * it. For one thread. */
#ifndef BPF_WAITS_H
#define BPF_WAITS_H

#include "bpf/sampler.h"

/* The keys of enum wait_result. */
extern const char *const wait_result_texts[WAIT_RESULT_COUNT];

/* From now on waits that end are samples: those of this length in ns for certain, shorter waits
 * with the probability of the ratio. 0: no waits are. Less than 4 s. */
void bpf_waits_set_period(struct bpf_sampler *, uint64_t period_ns);
/* Makes room for further samples: to be called whenever the rings are read. */
void bpf_waits_make_room(struct bpf_sampler *);
/* Since it was opened, by enum wait_result. Zeros: it was not opened for waits. */
void bpf_waits_counts(const struct bpf_sampler *, uint64_t counts[WAIT_RESULT_COUNT]);
#endif
