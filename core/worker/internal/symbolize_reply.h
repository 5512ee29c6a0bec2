/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block of the reply to REQUEST_SYMBOLIZE: functions, files and lines of addresses. The worker
 * writes it; the agent checks it before use, as a malicious file may control the worker. Host byte
 * order.
 */
#ifndef WORKER_SYMBOLIZE_REPLY_H
#define WORKER_SYMBOLIZE_REPLY_H

#include <assert.h>

#include "base/buf.h"
#include "symbols/symbols.h"
#include "worker/worker.h"

#define SYMBOLIZE_REPLY_MAGIC 0x316e7566u
#define SYMBOLIZE_REPLY_FLAGS (SYMBOLS_STUB | SYMBOLS_INLINED)

#define SYMBOLIZE_MAX_ADDRESSES (16u << 20) /* of one request */

/*
 * The head. These follow, each without a gap:
 *   struct worker_span spans[nspans];
 *   uint32_t first[n + 1];
 *   struct symbolize_reply_frame frames[nframes];  of the addresses, then of the spans
 *   char texts[texts];                             each ends with a NUL
 */
struct symbolize_reply {
	uint32_t magic, n; /* n: addresses of the request */
	uint32_t nframes, quality;
	uint64_t texts;      /* bytes */
	uint32_t alt_name;   /* position in texts: the dwz file that is missing */
	uint32_t alt_id_len; /* bytes of its build ID; 0: none is missing */
	uint8_t alt_id[64];
	uint32_t nspans, pad;
};
static_assert(sizeof(struct symbolize_reply) == 104, "without padding; spans are aligned to 8");

/* See struct symbols_frame. */
struct symbolize_reply_frame {
	uint32_t name, system_name, file; /* positions in texts */
	uint32_t line, column, start_line, flags;
};

/* Worker. Looks n addresses up and appends the block to an empty buf. 0 or -errno. */
int symbolize_reply_write(struct buf *, struct symbols *, const uint64_t *addresses, uint32_t n);
/* Worker. The sources of the names: flags of INSPECTION_SOURCES. */
uint32_t symbolize_reply_quality(const struct symbols *);
/* Agent. Checks a block that answers a request for n addresses. *ret points into the block, which
 * must outlive it; release with free((void *)ret->frames). 0, -EBADMSG or -ENOMEM. */
int symbolize_reply_open(struct worker_symbols *ret, const void *block, uint64_t len, uint32_t n);
#endif
