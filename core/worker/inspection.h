/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An inspection as one block of bytes: how it crosses from the worker and how it lies on disk. Host
 * byte order, positions in bytes from the block's start. The worker may have been taken over by the
 * file that it looked at, so the agent believes nothing of a block that it did not check.
 */
#ifndef WORKER_INSPECTION_H
#define WORKER_INSPECTION_H

#include "base/buf.h"
#include "worker/worker.h"

#define INSPECTION_MAGIC 0x65757366u
#define INSPECTION_VERSION 2
#define INSPECTION_MAX_SLABS 64u
#define INSPECTION_MAX_CLAIMS 16u
#define INSPECTION_MAX_BYTES (1ull << 30)

struct inspection_block {
	uint32_t magic, version;
	uint64_t bytes; /* of all of it */
	uint8_t key[32];
	uint16_t machine, type;
	uint32_t flags;
	uint64_t entry;
	uint8_t build_id[64];
	uint32_t build_id_len, debuglink_crc;
	uint32_t nsegments, nslabs;
	uint64_t segments_at;            /* struct fusee_segment */
	uint64_t slabs_at;               /* struct inspection_block_slab */
	uint64_t debuglink_at, notes_at; /* end with a NUL */
};

struct inspection_block_slab {
	char unwinder[32];
	uint32_t version, nclaims;
	uint64_t words_at, n; /* words of 32 bits */
	uint64_t claims_at;   /* struct inspection_claim */
};

/* The worker's side: `from` as a block, appended to an empty buf. 0 or -ENOMEM, -EFBIG. */
int inspection_write(struct buf *, const struct inspection *from);

/*
 * The agent's side. Takes over the mapping at `map` (munmap'ed with the last reference, or here on
 * failure). key NULL: any. 0, -EBADMSG: a position, size or text is not what it must be, -ENOMEM.
 */
int inspection_open(struct inspection **ret, void *map, uint64_t len, const uint8_t key[32]);
/* The block of an open inspection, for writing it to disk. */
const void *inspection_bytes(const struct inspection *, uint64_t *len);
#endif
