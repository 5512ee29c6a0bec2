/* SPDX-License-Identifier: Apache-2.0 */
/* Names of addresses as one block of bytes: made in the worker, believed by the agent only after a
 * check. */
#ifndef WORKER_NAMES_H
#define WORKER_NAMES_H

#include "base/buf.h"
#include "symbols/symbols.h"
#include "worker/worker.h"

#define NAMES_MAGIC 0x316e7566u
#define NAMES_KNOWN_FLAGS (SYMBOLS_STUB | SYMBOLS_INLINED)
#define NAMES_MAX_ADDRESSES (16u << 20)

struct names_block {
	uint32_t magic, n;
	uint32_t nframes, quality;
	uint64_t texts;      /* bytes of texts, the last is a NUL */
	uint32_t alt_name;   /* in texts: the dwz file that is missing */
	uint32_t alt_id_len; /* of its build id; 0: none is missing */
	uint8_t alt_id[64];
	uint32_t nspans, pad;
	/* struct worker_span spans[nspans]; uint32_t first[n + 1]; struct names_frame
	 * frames[nframes]: those of the addresses, then those of spans; char texts[] */
};

struct names_frame {
	uint32_t name, system_name, file; /* in texts */
	uint32_t line, column, start_line, flags;
};

/* The worker's side: looks n addresses up, appended to an empty buf. 0 or -errno. */
int names_write(struct buf *, struct symbols *, const uint64_t *addresses, uint32_t n);
/* The agent's side: *ret points into block, which must outlive it; release with free(ret->frames).
 * -EBADMSG, -ENOMEM. */
int names_open(struct worker_symbols *ret, const void *block, uint64_t len, uint32_t n);
#endif
