/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspections on disk, a file each, named by their key. The folder is ours alone (0700); files are
 * written whole and renamed. A damaged or foreign file is removed and made again. Above the cap the
 * longest unused go.
 */
#ifndef WORKER_CACHE_H
#define WORKER_CACHE_H

#include "worker/worker.h"

#define CACHE_DEFAULT_BYTES (512ull << 20)

struct cache;

/* Makes dir, and its parents, if missing. -EPERM: it is another user's, or others can write to it;
 * -errno. */
int cache_open(struct cache **ret, const char *dir, uint64_t max_bytes);
void cache_close(struct cache *); /* NULL is fine */
/* 0; -ENOENT; -errno. What it gives has INSPECTION_CACHED. */
int cache_load(struct cache *, const uint8_t key[32], struct inspection **ret);
/* 0 or -errno: the disk is full, and so on: nothing is left behind. */
int cache_store(struct cache *, const struct inspection *);
#endif
