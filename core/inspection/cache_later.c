/* SPDX-License-Identifier: Apache-2.0 */
#include "inspection/cache_later.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "inspection/internal/cache.h"
#include "base/log.h"
#include "base/metrics.h"

#define MOST_WAITING 256u /* jobs, each of which keeps an inspection or a block in memory */

struct write {
	struct cache *cache;
	char *name;
	uint8_t key[32];
	struct inspection *inspection; /* this, or `map`, or `line` is written */
	void *map;
	uint64_t bytes; /* of map */
	uint32_t version;
	struct buf line;
};

static void write_free(struct write *w)
{
	inspection_unref(w->inspection);
	if (w->map)
		munmap(w->map, w->bytes);
	buf_fini(&w->line);
	free(w->name);
	free(w);
}

static void write_now(void *arg)
{
	struct write *w = arg;
	int err;

	if (w->inspection)
		err = cache_store(w->cache, w->key, w->inspection);
	else if (w->map)
		err = cache_store_block(w->cache, w->key, w->version, w->map, w->bytes);
	else
		err = cache_append(w->cache, w->name, &w->line);
	if (err) {
		log_debug("%s: not kept in the cache: %s", w->name, strerror(-err));
		metric_add("cache_write_failures_total",
			   "Total number of inspections, tables of names and refusals that could "
			   "not be written to the cache on disk.",
			   NULL, 1);
	}
	write_free(w);
}

/* Without memory nothing is written: only the background thread may write. */
static void write_later(struct background *b, struct write *w)
{
	if (background_try(b, write_now, w))
		write_free(w);
}

/* NULL: no memory. */
static struct write *write_new(struct cache *c, const char *name)
{
	struct write *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->cache = c;
	w->name = strdup(name);
	if (w->name)
		return w;
	free(w);
	return NULL;
}

void cache_store_later(struct background *b, struct cache *c, const uint8_t key[32],
		       struct inspection *i, const char *name)
{
	struct write *w = background_waiting(b) < MOST_WAITING ? write_new(c, name) : NULL;

	if (!w)
		return;
	cache_expect(c, key);
	memcpy(w->key, key, sizeof(w->key));
	inspection_set_stored(i, key);
	inspection_ref(i);
	w->inspection = i;
	write_later(b, w);
}

void cache_store_block_later(struct background *b, struct cache *c, const uint8_t key[32],
			     uint32_t version, void *map, uint64_t bytes, const char *name)
{
	struct write *w = background_waiting(b) < MOST_WAITING ? write_new(c, name) : NULL;

	if (!w) {
		munmap(map, bytes);
		return;
	}
	cache_expect(c, key);
	memcpy(w->key, key, sizeof(w->key));
	w->map = map;
	w->bytes = bytes;
	w->version = version;
	write_later(b, w);
}

void cache_append_later(struct background *b, struct cache *c, const char *name, struct buf *line)
{
	struct write *w = write_new(c, name);

	if (w) {
		w->line = *line;
		*line = (struct buf){0};
		write_later(b, w);
	}
	buf_fini(line);
}

static void close_now(void *arg)
{
	cache_close(arg);
}

void cache_close_later(struct background *b, struct cache *c)
{
	if (background_try(b, close_now, c) && !background_waiting(b))
		cache_close(c);
}
