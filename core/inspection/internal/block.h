/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An inspection as one block of bytes, as the worker sends it and the cache stores it. Host byte
 * order, positions in bytes from the block's start. A malicious file may control the worker that
 * parsed it, so the agent checks every number and text of a block before use. The meaning of a
 * table's words is not checked here.
 */
#ifndef INSPECTION_BLOCK_H
#define INSPECTION_BLOCK_H

#include <assert.h>

#include "base/buf.h"
#include "inspection/inspection.h"

#define INSPECTION_MAGIC 0x65757366u
#define INSPECTION_VERSION 6
#define INSPECTION_MAX_SLABS 64u
#define INSPECTION_MAX_CLAIMS 256u
#define INSPECTION_MAX_BYTES (1ull << 30)

struct inspection_block {
	uint32_t magic, version;
	uint64_t bytes; /* of the block */
	uint8_t key[32];
	uint16_t machine, type;
	uint32_t flags;
	uint64_t entry;
	uint8_t build_id[64];
	uint32_t build_id_len, debuglink_crc;
	uint32_t nsegments, nslabs;
	uint64_t segments_at;            /* struct fusee_segment */
	uint64_t slabs_at;               /* struct inspection_block_slab */
	uint64_t debuglink_at, notes_at; /* texts, terminated */
	uint64_t compiler_at;            /* the same */
};

static_assert(sizeof(struct inspection_block) == 184, "without padding");

struct inspection_block_slab {
	char unwinder[32];
	uint32_t version, nclaims;
	uint64_t words_at, n; /* words of 32 bits */
	uint64_t claims_at;   /* struct inspection_claim */
};

static_assert(sizeof(struct inspection_block_slab) == 64, "without padding");

/* Whether a name can be a debug link: printable, and one part of a path. Paths are made with it as
 * their last part. */
bool inspection_is_file_name(const char *name);

/* Worker. Appends `from` as a block to an empty buf. 0, -ENOMEM or -EFBIG. */
int inspection_write(struct buf *, const struct inspection *from);

/* The block of an inspection. */
const void *inspection_bytes(const struct inspection *, uint64_t *len);
#endif
