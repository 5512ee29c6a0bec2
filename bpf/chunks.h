/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Looks up the mappings that user space published of a process. */
#ifndef BPF_CHUNKS_H
#define BPF_CHUNKS_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "maps.h"

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__type(key, __u32);
	__type(value, struct map_chunk);
} sampler_chunks SEC(".maps");

FUSEE_FN struct map_chunk *chunk_at(__u32 chunk)
{
	return fusee_bpf_map_lookup_elem(&sampler_chunks, &chunk);
}

/* The chunk of the list that may hold this address; *chunk is the first, and is set to this. */
FUSEE_FN struct map_chunk *find_chunk(__u32 *chunk, __u64 at)
{
	struct map_chunk *c = chunk_at(*chunk);

	for (__u32 i = 1; i < MAX_CHUNKS; i++) {
		__u32 last;

		if (!c || !c->next)
			break;
		last = c->n - 1;
		if (last >= CHUNK_MAPPINGS || at < c->mappings[last].hi)
			break;
		*chunk = c->next;
		c = chunk_at(*chunk);
	}
	return c;
}

FUSEE_FN struct map_chunk *chunk_of(__u32 first, __u64 at)
{
	return find_chunk(&first, at);
}

/* The index of the first mapping that ends above an address; CHUNK_MAPPINGS or c->n: none does. */
FUSEE_FN __u32 first_above(struct map_chunk *c, __u64 at)
{
	__u32 low = 0, high = c->n;

	if (high > CHUNK_MAPPINGS)
		return CHUNK_MAPPINGS;
	for (__u32 i = 0; i < 5 && low < high; i++) { /* 2^5 > CHUNK_MAPPINGS */
		__u32 middle = (low + high) / 2;

		/* the verifier of 5.10 needs the bound that the compiler has proved */
		__asm__ volatile("" : "+r"(middle));
		if (middle >= CHUNK_MAPPINGS)
			break;
		if (c->mappings[middle].hi > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The mapping that holds this address; NULL: none does. */
FUSEE_FN struct chunk_mapping *mapping_of(struct map_chunk *c, __u64 at)
{
	__u32 low = first_above(c, at);
	struct chunk_mapping *m;

	if (low >= c->n || low >= CHUNK_MAPPINGS)
		return 0;
	m = &c->mappings[low];
	return at >= m->lo ? m : 0;
}

/* Does a published mapping overlap [lo, hi)? */
FUSEE_FN int holds_code(__u32 first, __u64 lo, __u64 hi)
{
	struct map_chunk *c = chunk_of(first, lo);
	__u32 low;

	if (!c)
		return 0;
	low = first_above(c, lo);
	return low < c->n && low < CHUNK_MAPPINGS && c->mappings[low].lo < hi;
}

/* What note_changed() found. */
enum changed_range {
	CHANGED_NONE, /* no published mapping is in the range */
	CHANGED_NOTED,
	CHANGED_UNKNOWN, /* the list was being written, or the range is in several chunks */
};

/* Notes in the published mappings that overlap [lo, hi) that memory was given out there. */
FUSEE_FN enum changed_range note_changed(struct map_chunk *head, __u32 first, __u64 lo, __u64 hi,
					 __u64 now)
{
	__u32 version = READ_ONCE(head->version), i;
	struct map_chunk *c = chunk_of(first, lo);
	enum changed_range found = CHANGED_NONE;

	if (!c || version & 1)
		return CHANGED_UNKNOWN;
	i = first_above(c, lo);
	for (__u32 n = 0; n < CHUNK_MAPPINGS; n++) {
		__asm__ volatile("" : "+r"(i)); /* the verifier needs each bound */
		if (i >= c->n || i >= CHUNK_MAPPINGS || c->mappings[i].lo >= hi)
			break;
		READ_ONCE(c->mappings[i].changed) = now;
		found = CHANGED_NOTED;
		i++;
	}
	if (i >= c->n && c->next && (c = chunk_at(c->next)) && c->mappings[0].lo < hi)
		return CHANGED_UNKNOWN;
	return READ_ONCE(head->version) == version ? found : CHANGED_UNKNOWN;
}

/* Keeps the range, in which user space marks the mappings once it has written the list. Pages that
 * are given out one beside the other are one range. No two calls for a process overlap: who is
 * given memory holds the lock of its address space. */
FUSEE_FN void note_unmarked(struct map_chunk *head, __u64 lo, __u64 hi)
{
	__u32 version = READ_ONCE(head->version), n = READ_ONCE(head->unmarked.n), i;
	struct unmarked_range *at;

	if (READ_ONCE(head->unmarked.version) != version)
		n = 0;
	i = n - 1;
	__asm__ volatile("" : "+r"(i));
	if (i >= UNMARKED_RANGES ||
	    (head->unmarked.at[i].lo != hi && head->unmarked.at[i].hi != lo))
		i = n < UNMARKED_RANGES ? n : UNMARKED_RANGES - 1;
	__asm__ volatile("" : "+r"(i)); /* the verifier needs the bound */
	if (i >= UNMARKED_RANGES)
		return;
	at = &head->unmarked.at[i];
	if (n > i && at->lo < lo)
		lo = at->lo;
	if (n > i && at->hi > hi)
		hi = at->hi;
	READ_ONCE(at->lo) = lo;
	READ_ONCE(at->hi) = hi;
	READ_ONCE(head->unmarked.n) = i + 1;
	READ_ONCE(head->unmarked.version) = version;
}

/* The version of a process's mappings. Odd: they are being written, belong to another process, or
 * memory was given out while they were written that user space does not know yet. */
FUSEE_FN __u32 version_of(__u32 first, __u64 process)
{
	struct map_chunk *c = chunk_at(first);
	__u32 version;

	if (!c)
		return 1;
	version = READ_ONCE(c->version);
	return READ_ONCE(c->process) == process && READ_ONCE(c->blurred) <= READ_ONCE(c->as_of)
		       ? version
		       : 1;
}
#endif
