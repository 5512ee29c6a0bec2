/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to the cache. Each can wait for the disk; cache_later.h makes them in the background. */
#ifndef INSPECTION_INTERNAL_CACHE_H
#define INSPECTION_INTERNAL_CACHE_H

#include "inspection/cache.h"

void cache_close(struct cache *); /* NULL is valid */
/* Makes cache_load() and cache_open_block() look for this key, which was not on disk at
 * cache_open(). */
void cache_expect(struct cache *, const uint8_t key[32]);
/* Stores a file under the key. 0 or -errno, and then no file remains. One other thread may call
 * these two and cache_append() at any time. */
int cache_store(struct cache *, const uint8_t key[32], const struct inspection *);
int cache_store_block(struct cache *, const uint8_t key[32], uint32_t version, const void *block,
		      uint64_t bytes);
/* Appends a line to a text that is kept beside the inspections. 0; -EFBIG: it has more than 1 MiB;
 * -errno. */
int cache_append(struct cache *, const char *name, const struct buf *line);
#endif
