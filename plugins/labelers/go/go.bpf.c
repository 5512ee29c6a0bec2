/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Reads the labels of the goroutine that a thread of Go runs, also while the thread is on a stack
 * of its own. The thread was interrupted, so its goroutine changes nothing meanwhile; sets of
 * labels are not changed once a goroutine has them, and the heap does not move.
 */
#include <fusee/labeler.bpf.h>

#include "words.h"

/* Of a map's header: struct hmap of Go 1.18 to 1.23. */
enum hmap {
	HMAP_COUNT = 0,
	HMAP_FLAGS = 8,
	HMAP_BUCKETS_LOG2 = 9,
	HMAP_BUCKETS = 16,
	HMAP_BYTES = 24
};

#define BUCKET_SLOTS 8u
#define BUCKET_LEAST 5u /* hash of a slot in use */
#define BUCKET_MOST 2u  /* that are read: as many as 13 labels have */
#define STRING 16u      /* bytes: address and length */
/* A bucket: a hash for each slot, the keys, the values, the address of the next. */
#define BUCKET_BYTES (BUCKET_SLOTS + 2 * BUCKET_SLOTS * STRING + 8)

/* Gives the label whose texts these two strings are. enum fusee_label. */
static int give(struct fusee_unwind *u, const __u64 key[2], const __u64 value[2])
{
	return fusee_label_text(u, key[0], key[1], value[0], value[1]) ? FUSEE_LABEL_UNREADABLE
								       : FUSEE_LABEL_GIVEN;
}

/* The goroutine's word `labels`, by the words of the process; 0: it has none. enum fusee_label. */
static int find_labels(struct fusee_unwind *u, __u64 *labels)
{
	__u32 g, m, curg, at;

	*labels = 0;
	if (!u->tls || fusee_process_word(u, GO_G, &g) || fusee_process_word(u, GO_M, &m) ||
	    fusee_process_word(u, GO_CURG, &curg) || fusee_process_word(u, GO_LABELS, &at))
		return FUSEE_LABEL_NONE;
	if (fusee_read(u, labels, 8, u->tls + (__u64)(__s64)(int)g))
		return FUSEE_LABEL_UNREADABLE;
	if (!*labels) /* a thread that the runtime does not know */
		return FUSEE_LABEL_NONE;
	if (fusee_read(u, labels, 8, *labels + m))
		return FUSEE_LABEL_UNREADABLE;
	if (!*labels) /* the thread begins */
		return FUSEE_LABEL_NONE;
	if (fusee_read(u, labels, 8, *labels + curg))
		return FUSEE_LABEL_UNREADABLE;
	if (!*labels) /* it runs no goroutine */
		return FUSEE_LABEL_NONE;
	return fusee_read(u, labels, 8, *labels + at) ? FUSEE_LABEL_UNREADABLE : FUSEE_LABEL_NONE;
}

/* Label i of the slice at u->scratch[0]. enum fusee_label, or -1: there is none. */
static int read_slice(struct fusee_unwind *u, __u32 i)
{
	__u64 label[4];

	/* one more than is kept: then it is known that there are more */
	if (i > FUSEE_LABEL_TEXTS || i >= u->scratch[1])
		return -1;
	if (fusee_read(u, label, sizeof(label), u->scratch[0] + i * sizeof(label)))
		return FUSEE_LABEL_UNREADABLE;
	return give(u, label, label + 2);
}

FUSEE_PART(fusee_go_slice, read_slice)

/* Slot i of the buckets at u->scratch[0]. enum fusee_label, or -1: there is none. */
static int read_slot(struct fusee_unwind *u, __u32 i)
{
	__u64 bucket = u->scratch[0] + i / BUCKET_SLOTS * BUCKET_BYTES, key[2], value[2];
	__u32 slot = i % BUCKET_SLOTS;
	__u64 keys = bucket + BUCKET_SLOTS + slot * STRING;
	__u8 hash;

	if (i >= u->scratch[1] * BUCKET_SLOTS)
		return -1;
	if (fusee_read(u, &hash, 1, bucket + slot))
		return FUSEE_LABEL_UNREADABLE;
	if (hash < BUCKET_LEAST)
		return FUSEE_LABEL_NONE;
	if (fusee_read(u, key, sizeof(key), keys) ||
	    fusee_read(u, value, sizeof(value), keys + BUCKET_SLOTS * STRING))
		return FUSEE_LABEL_UNREADABLE;
	return give(u, key, value);
}

FUSEE_PART(fusee_go_slot, read_slot)

/* Sets u->scratch to the labels: their address, how many slots or buckets there are, and, of a map,
 * how many labels. */
static int begin(struct fusee_unwind *u, __u64 labels, __u32 form)
{
	unsigned char map[HMAP_BYTES];

	if (form == GO_SLICE)
		return fusee_read(u, u->scratch, 16, labels) ? -1 : 0;
	if (fusee_read(u, &labels, 8, labels))
		return -1;
	u->scratch[0] = u->scratch[1] = u->scratch[2] = 0;
	if (!labels) /* an empty map */
		return 0;
	if (fusee_read(u, map, sizeof(map), labels))
		return -1;
	__builtin_memcpy(u->scratch, map + HMAP_BUCKETS, 8);
	__builtin_memcpy(u->scratch + 2, map + HMAP_COUNT, 8);
	u->scratch[1] = u->scratch[0] ? map[HMAP_BUCKETS_LOG2] ? BUCKET_MOST : 1 : 0;
	return 0;
}

static int go_step(struct fusee_unwind *u)
{
	__u64 labels;
	__u32 form, given = 0;
	int how = find_labels(u, &labels);

	if (how != FUSEE_LABEL_NONE || !labels)
		return how;
	if (fusee_process_word(u, GO_FORM, &form) || begin(u, labels, form))
		return FUSEE_LABEL_UNREADABLE;
	for (__u32 i = 0; i < BUCKET_MOST * BUCKET_SLOTS; i++) {
		int next = form == GO_SLICE ? FUSEE_CALL(fusee_go_slice, u, i)
					    : FUSEE_CALL(fusee_go_slot, u, i);

		if (next == FUSEE_LABEL_UNREADABLE)
			return next;
		if (next < 0)
			break;
		if (next == FUSEE_LABEL_GIVEN)
			given++;
	}
	if (form != GO_SLICE && given < u->scratch[2]) /* in buckets that are not read */
		return FUSEE_LABEL_MORE;
	return given ? FUSEE_LABEL_GIVEN : FUSEE_LABEL_NONE;
}

FUSEE_LABELER_STEP(go, go_step);
