/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to the cache in the background, because a write can block on the disk: the file system's
 * journal waits for writes of all processes. Writes that fail are counted. cache_close_later()
 * closes the cache. One thread. */
#ifndef INSPECTION_CACHE_LATER_H
#define INSPECTION_CACHE_LATER_H

#include "base/background.h"
#include "base/buf.h"
#include "inspection/cache.h"

/* Stores the inspection under the key, and holds a reference until then. Without memory, or with
 * 256 waiting writes, it is not stored. name: of the inspected file, for the log. */
void cache_store_later(struct background *, struct cache *, const uint8_t key[32],
		       struct inspection *, const char *name);
/* The same for a block of another room. Takes the mapping over and unmaps it. */
void cache_store_block_later(struct background *, struct cache *, const uint8_t key[32],
			     uint32_t version, void *map, uint64_t bytes, const char *name);
/* Appends a line to a text of this name, up to 1 MiB. Takes the line over and empties the buf.
 * Without memory it is not appended. */
void cache_append_later(struct background *, struct cache *, const char *name, struct buf *line);
/* Closes the cache after all its writes. It stays open if there is no memory while a write is
 * running. NULL is fine. */
void cache_close_later(struct background *, struct cache *);
#endif
