/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to the cache is written in the background, as a disk can keep who writes waiting:
 * its journal waits for others, whoever they are. The cache is closed by cache_close_later(). One
 * thread. */
#ifndef INSPECTION_CACHE_LATER_H
#define INSPECTION_CACHE_LATER_H

#include "base/background.h"
#include "base/buf.h"
#include "inspection/cache.h"

/* cache_store() of the inspection, of which it keeps a reference until then. Without memory, or if
 * the disk is behind by far, it is not kept. name: for the log. */
void cache_store_later(struct background *, struct cache *, const uint8_t key[32],
		       struct inspection *, const char *name);
/* cache_append(). Takes the line, and leaves an empty buf. Without memory it is not appended. */
void cache_append_later(struct background *, struct cache *, const char *name, struct buf *line);
/* Closes the cache behind all that is written to it. Without memory, while something is written, it
 * stays open. NULL is fine. */
void cache_close_later(struct background *, struct cache *);
#endif
