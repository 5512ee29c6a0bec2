// SPDX-License-Identifier: Apache-2.0
/* Which pages of unwind tables runs have used: read from the cache and written to it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "inspection/cache_later.h"
#include "inspection/used_pages.h"
#include "worker/internal/client.h"

static bool is_kept(const struct worker *w, const struct inspection *i, uint32_t n)
{
	return w && w->cache && i->is_stored && n && n <= USED_PAGES_MOST;
}

struct used_pages *worker_used_pages(struct worker *w, const struct inspection *i,
				     const char *unwinder, uint32_t n)
{
	size_t bytes = used_pages_bytes(n);
	struct used_pages *u = is_kept(w, i, n) ? malloc(bytes) : NULL;
	uint8_t key[32];

	if (!u)
		return NULL;
	used_pages_key(i, unwinder, key);
	if (!cache_read_block(w->cache, key, USED_PAGES_VERSION, u, bytes)) {
		if (used_pages_are_valid(u, bytes, n))
			return u;
		cache_remove(w->cache, key);
	}
	free(u);
	return NULL;
}

void worker_keep_used_pages(struct worker *w, const struct inspection *i, const char *unwinder,
			    uint32_t n, const uint8_t *bits)
{
	size_t bytes = used_pages_bytes(n);
	struct used_pages *u, *older;
	uint8_t key[32];

	if (!is_kept(w, i, n))
		return;
	u = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u == MAP_FAILED)
		return;
	older = worker_used_pages(w, i, unwinder, n);
	used_pages_next(u, n, bits, older);
	if (older && !memcmp(u, older, bytes)) {
		munmap(u, bytes);
	} else {
		used_pages_key(i, unwinder, key);
		cache_store_block_later(w->background, w->cache, key, USED_PAGES_VERSION, u, bytes,
					"pages of a table");
	}
	free(older);
}
