/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspections, and blocks of other rooms, on disk, one file each, named by a key that the caller
 * chooses. The folder must belong to the user, and no other user may write to it. Files are written
 * under a temporary name and renamed. A malformed file is removed. Above the limit, files that were
 * unused for longest are removed. One thread.
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
void cache_close(struct cache *); /* NULL is valid */
/* The inspection of that key, with INSPECTION_CACHED; the caller owns its reference. 0, -ENOENT or
 * -errno. */
int cache_load(struct cache *, const uint8_t key[32], struct inspection **ret);
/* Bytes that another room stores beside the inspections; version: what they are, the caller's.
 * Where they are: the descriptor *fd, which the caller closes, from *at on, *bytes of them. They
 * may be changed or truncated at any time. 0, -ENOENT or -errno. */
int cache_open_block(struct cache *, const uint8_t key[32], uint32_t version, int *fd, uint64_t *at,
		     uint64_t *bytes);
int cache_store_block(struct cache *, const uint8_t key[32], uint32_t version, const void *block,
		      uint64_t bytes); /* as cache_store() */
void cache_remove(struct cache *, const uint8_t key[32]);
/* Appends a line to a text that is kept beside the inspections. 0; -EFBIG: it has 1 MiB; -errno. */
int cache_append(struct cache *, const char *name, const struct buf *line);
/* Reads such a text, and removes the file if it has more than 512 KiB. 0 or -errno. */
int cache_text(struct cache *, const char *name, struct buf *text);
/* cache_load() looks only for keys that were on disk at cache_open(), and for keys given to
 * this. */
void cache_expect(struct cache *, const uint8_t key[32]);
/* 0 or -errno, and then no file remains. One other thread may call this and cache_append() at any
 * time.
 */
int cache_store(struct cache *, const uint8_t key[32], const struct inspection *);
#endif
