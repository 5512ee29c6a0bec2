/* SPDX-License-Identifier: Apache-2.0 */
/* What the BPF sampler has written of allocations, if it was opened to follow them. For one thread.
 */
#ifndef BPF_INUSE_H
#define BPF_INUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "../../bpf/inuse_maps.h"
#include "bpf/sampler.h"

enum bpf_inuse_map {
	BPF_INUSE_CALLS,  /* struct inuse_call_key -> struct inuse_call */
	BPF_INUSE_LIVE,   /* struct inuse_key -> struct inuse_block */
	BPF_INUSE_SPACES, /* uint32_t, a process -> uint32_t, inuse_block.space of what it has */
};

/* Was it opened so? */
bool bpf_inuse_is_followed(const struct bpf_sampler *);
/* Calls each() with all entries of a map, until it does not return 0. Returns what it has returned,
 * or -errno. */
int bpf_inuse_each(const struct bpf_sampler *, enum bpf_inuse_map,
		   int (*each)(void *arg, const void *key, const void *value), void *arg);
/* Removes what is in use with this id: its process has ended. Another may have its place by now. */
void bpf_inuse_remove(const struct bpf_sampler *, const struct inuse_key *, uint32_t id);
/* Removes the call of a thread that has ended; or the process's space: it has nothing in use. */
void bpf_inuse_forget(const struct bpf_sampler *, enum bpf_inuse_map, const void *key);

/* Samples that are not followed. */
struct bpf_inuse_counts {
	uint32_t unfollowed; /* there was no room */
	uint32_t unreturned; /* of a `new` that calls no malloc() */
};

struct bpf_inuse_counts bpf_inuse_counts(const struct bpf_sampler *);
#endif
