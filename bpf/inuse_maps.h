/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Memory in use: the maps of inuse.h; shared with user space (core/bpf/inuse.c). */
#ifndef BPF_INUSE_MAPS_H
#define BPF_INUSE_MAPS_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define INUSE_LIVE 262144u    /* followed allocations that are in use at once */
#define INUSE_CALLS 16384u    /* calls of allocators that are followed and have not returned */
#define INUSE_SPACES 16384u   /* processes with such allocations */
#define INUSE_COUNTS 65536u   /* of inuse_state.live; a power of 2 */
#define INUSE_IDS 0x7fffffffu /* the largest id; all bits of ids */

/* An allocation: where it is. */
struct inuse_key {
	__u64 at;
	__u32 tgid, pad;
};

/* .. and which it is. A process's memory ends with its exec and its exit; then its space is no
 * longer that in the map of spaces. */
struct inuse_block {
	__u32 id, space;
};

/* A call that has not returned yet: of this thread, with its return address there. */
struct inuse_call_key {
	__u64 ids, sp;
};

struct inuse_call {
	struct inuse_block block;
	__u64 where;            /* where the pointer will be; 0: it is returned */
	__u64 old;              /* what realloc() is to end, and did not if it fails; 0: nothing */
	struct inuse_block was; /* that */
};

/* Its only element. */
struct inuse_state {
	__u32 ids;  /* that were given, by turns from 1 to INUSE_IDS */
	__u32 full; /* allocations that were not followed: a map was full */
	/* .. and since `new` has called no malloc(), or another thread came between. */
	__u32 unreturned, pad;
	/* By a hash of the key: how many entries there are. free() of other memory ends here. */
	__u32 live[INUSE_COUNTS];
};

static inline __u32 inuse_hash(__u64 at, __u32 tgid)
{
	return (__u32)(((at >> 4) + tgid) * 0x9e3779b97f4a7c15ull >> 48) & (INUSE_COUNTS - 1);
}
#endif
