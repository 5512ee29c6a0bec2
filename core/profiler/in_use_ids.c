/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/in_use_ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hashmap.h"
#include "bpf/inuse.h"

struct live {
	struct inuse_key key;
	struct inuse_block block;
};

struct reading {
	struct hashmap spaces; /* of processes that have not ended */
	struct buf *ids;
	struct buf live; /* struct live */
};

static int add_space(void *arg, const void *key, const void *value)
{
	struct reading *r = arg;
	uint32_t space;

	(void)key;
	memcpy(&space, value, sizeof(space));
	return hashmap_put(&r->spaces, space, r);
}

static int add_live(void *arg, const void *key, const void *value)
{
	struct reading *r = arg;
	struct live live;

	memcpy(&live.key, key, sizeof(live.key));
	memcpy(&live.block, value, sizeof(live.block));
	return buf_add(&r->live, &live, sizeof(live));
}

static int add_block(struct reading *r, const struct inuse_block *block)
{
	return buf_add(r->ids, &block->id, sizeof(block->id));
}

static int add_call(void *arg, const void *key, const void *value)
{
	struct reading *r = arg;
	struct inuse_call call;
	int err;

	(void)key;
	memcpy(&call, value, sizeof(call));
	err = call.block.id ? add_block(r, &call.block) : 0;
	return !err && call.old ? add_block(r, &call.was) : err;
}

static int add_blocks(const struct bpf_sampler *b, struct reading *r)
{
	const struct live *live = (const struct live *)(const void *)r->live.p;
	int err = 0;

	for (size_t i = 0; !err && i < r->live.len / sizeof(*live); i++) {
		if (hashmap_get(&r->spaces, live[i].block.space))
			err = add_block(r, &live[i].block);
		else
			bpf_inuse_remove(b, &live[i].key, live[i].block.id);
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	uint32_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

int in_use_ids(const struct bpf_sampler *b, bool called, struct buf *ids)
{
	struct reading reading = {.ids = ids};
	int r = 0;

	/* A call's entry is removed when its memory is among what is in use; and a process that is
	 * not among those with memory has ended. */
	if (called)
		r = bpf_inuse_each(b, BPF_INUSE_CALLS, add_call, &reading);
	if (!r)
		r = bpf_inuse_each(b, BPF_INUSE_LIVE, add_live, &reading);
	if (!r)
		r = bpf_inuse_each(b, BPF_INUSE_SPACES, add_space, &reading);
	if (!r)
		r = add_blocks(b, &reading);
	if (!r && ids->len)
		qsort(ids->p, ids->len / sizeof(uint32_t), sizeof(uint32_t), compare);
	hashmap_fini(&reading.spaces);
	buf_fini(&reading.live);
	return r;
}
