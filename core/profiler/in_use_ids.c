/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/in_use_ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hashmap.h"
#include "bpf/inuse.h"

/* An entry of what is in use, or of calls: which process has which allocations. */
struct entry {
	union {
		struct inuse_key at;
		struct inuse_call_key call;
	} key;
	bool is_call;
	uint32_t tgid;
	struct inuse_block block, was; /* .id 0: none */
};

struct reading {
	struct hashmap spaces; /* by process that has not ended: its space, as a pointer */
	struct buf *ids;
	struct buf entries; /* struct entry */
};

static int add_space(void *arg, const void *key, const void *value)
{
	struct reading *r = arg;
	uint32_t tgid, space;

	memcpy(&tgid, key, sizeof(tgid));
	memcpy(&space, value, sizeof(space));
	return hashmap_put(&r->spaces, tgid, (void *)(uintptr_t)space);
}

static int add_live(void *arg, const void *key, const void *value)
{
	struct reading *r = arg;
	struct entry e = {0};

	memcpy(&e.key.at, key, sizeof(e.key.at));
	memcpy(&e.block, value, sizeof(e.block));
	e.tgid = e.key.at.tgid;
	return buf_add(&r->entries, &e, sizeof(e));
}

static int add_call(void *arg, const void *key, const void *value)
{
	struct reading *r = arg;
	struct entry e = {.is_call = true};
	struct inuse_call call;

	memcpy(&e.key.call, key, sizeof(e.key.call));
	memcpy(&call, value, sizeof(call));
	e.tgid = (uint32_t)(e.key.call.ids >> 32);
	e.block = call.block;
	if (call.old)
		e.was = call.was;
	return buf_add(&r->entries, &e, sizeof(e));
}

static bool is_current(const struct reading *r, const struct entry *e)
{
	uintptr_t space = (uintptr_t)hashmap_get(&r->spaces, e->tgid);

	return space && space == (e->block.id ? e->block.space : e->was.space);
}

static int add_block(struct reading *r, const struct inuse_block *block)
{
	return block->id ? buf_add(r->ids, &block->id, sizeof(block->id)) : 0;
}

static int add_blocks(const struct bpf_sampler *b, struct reading *r)
{
	const struct entry *e = (const struct entry *)(const void *)r->entries.p,
			   *end = e + r->entries.len / sizeof(*e);
	int err = 0;

	for (; !err && e < end; e++) {
		if (is_current(r, e)) {
			err = add_block(r, &e->block);
			err = err ? err : add_block(r, &e->was);
		} else if (e->is_call) {
			bpf_inuse_forget(b, BPF_INUSE_CALLS, &e->key.call);
		} else {
			bpf_inuse_remove(b, &e->key.at, e->block.id);
		}
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
	buf_fini(&reading.entries);
	return r;
}
