/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspections, and blocks of other rooms, on disk, one file each, named by a key that the caller
 * chooses. The folder must belong to the user, and no other user may write to it. Files are written
 * under a temporary name and renamed. A malformed file is removed. Above the limit, files that were
 * unused for longest are removed. One thread. cache_later.h has the writes.
 */
#ifndef INSPECTION_CACHE_H
#define INSPECTION_CACHE_H

#include "base/buf.h"
#include "inspection/inspection.h"

#define CACHE_DEFAULT_BYTES (512ull << 20)

struct cache;

/* Creates dir and its parents if missing. max_bytes: of all files. -EPERM: the folder is another
 * user's, or others can write to it; -errno. */
int cache_open(struct cache **ret, const char *dir, uint64_t max_bytes);
/* The inspection of that key, with INSPECTION_CACHED; the caller owns its reference. It is found if
 * its key was on disk at cache_open() or was stored since by this process. 0, -ENOENT or -errno. */
int cache_load(struct cache *, const uint8_t key[32], struct inspection **ret);
/* The same for a block that another room has stored: *bytes bytes from *at on of the descriptor
 * *fd, which the caller closes. version: of the block's format, as it was stored. The file may be
 * changed or truncated at any time. */
int cache_open_block(struct cache *, const uint8_t key[32], uint32_t version, int *fd, uint64_t *at,
		     uint64_t *bytes);
/* Reads a block of that many bytes, whose checksum is right. 0; -ENOENT: there is none, and a file
 * that is damaged or of another size is removed; -errno. */
int cache_read_block(struct cache *, const uint8_t key[32], uint32_t version, void *block,
		     uint64_t bytes);
/* Whether these two would look for it on disk. */
bool cache_may_have(const struct cache *, const uint8_t key[32]);
void cache_remove(struct cache *, const uint8_t key[32]);
/* Reads a text that cache_append_later() has written, and removes the file if it has more than
 * 512 KiB. 0 or -errno. */
int cache_text(struct cache *, const char *name, struct buf *text);
#endif
