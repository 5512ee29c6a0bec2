/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a collector's samples, by sample. */
#ifndef PROFILER_BUILD_TIMES_H
#define PROFILER_BUILD_TIMES_H

#include <stdint.h>

struct collector;

/* The times of all samples, CLOCK_REALTIME ns, by sample: those of id i are (*times)[(*first)[i]]
 * and the following, up to (*first)[i + 1]; those that carry ids are not among them, but are those
 * of samples.n + the id in ids. The caller frees both; NULL: there are none. 0 or
 * -ENOMEM. */
int build_sort_times(const struct collector *, uint64_t **times, uint32_t **first);
#endif
