/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the BPF sampler has written of allocations that it follows. For one thread. */
#ifndef PROFILER_IN_USE_IDS_H
#define PROFILER_IN_USE_IDS_H

#include <stdbool.h>

struct bpf_sampler;
struct buf;

/* Adds the ids, uint32_t, of what is in use now, ascending. called: also of calls that have not
 * returned, so that an id that is not among them will never be in use. 0 or -errno. */
int in_use_ids(const struct bpf_sampler *, bool called, struct buf *ids);
#endif
