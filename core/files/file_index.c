/* SPDX-License-Identifier: Apache-2.0 */
#include "files/internal/file_index.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MIN_CAP 64u

struct file *file_index_find(const struct files *fs, const void *key, size_t len)
{
	struct file *f = hashmap_get(&fs->by_hash, XXH3_64bits(key, len));

	while (f && (f->key_len != len || memcmp(f->key, key, len)))
		f = f->same_hash;
	return f;
}

static int resize(struct files *fs, uint32_t cap)
{
	struct file **all = realloc(fs->all, cap * sizeof(struct file *));
	uint64_t *dropped;

	if (!all)
		return -1;
	fs->all = all;
	dropped = realloc(fs->dropped_ns, cap * sizeof(*dropped));
	if (!dropped)
		return -1;
	fs->dropped_ns = dropped;
	if (cap > fs->cap) {
		memset(all + fs->cap, 0, (cap - fs->cap) * sizeof(struct file *));
		memset(dropped + fs->cap, 0, (cap - fs->cap) * sizeof(*dropped));
	}
	fs->cap = cap;
	return 0;
}

static bool is_free(const struct files *fs, uint32_t id, uint64_t now)
{
	return !fs->all[id] && (!fs->dropped_ns[id] || now - fs->dropped_ns[id] > FILE_ID_GRACE_NS);
}

/* The lowest free id; 0: no memory. Ids below `lowest` were not free when it was set. */
static uint32_t choose_id(struct files *fs, uint64_t now)
{
	uint32_t id = fs->lowest;

	while (id < fs->n && !is_free(fs, id, now))
		id++;
	if (id >= fs->cap && resize(fs, fs->cap ? fs->cap * 2 : MIN_CAP))
		return 0;
	fs->lowest = id;
	return id;
}

static void free_file(struct file *f)
{
	free(f->key);
	free(f->path);
	free(f);
}

struct file *file_index_add(struct files *fs, const void *key, size_t len, const char *path,
			    uint64_t now)
{
	uint64_t hash = XXH3_64bits(key, len);
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	*f = (struct file){.files = fs,
			   .fd = -1,
			   .added_ns = now,
			   .used_ns = now,
			   .key = malloc(len),
			   .path = strdup(path)};
	f->id = f->key && f->path ? choose_id(fs, now) : 0;
	f->same_hash = hashmap_get(&fs->by_hash, hash);
	if (!f->id || hashmap_put(&fs->by_hash, hash, f)) {
		free_file(f);
		return NULL;
	}
	memcpy(f->key, key, len);
	f->key_len = len;
	fs->all[f->id] = f;
	fs->lowest = f->id + 1;
	if (f->id >= fs->n)
		fs->n = f->id + 1;
	return f;
}

void file_index_remove(struct files *fs, struct file *f, uint64_t now)
{
	uint64_t hash = XXH3_64bits(f->key, f->key_len);
	struct file *first = hashmap_get(&fs->by_hash, hash);

	if (first == f) {
		if (f->same_hash)
			hashmap_put(&fs->by_hash, hash,
				    f->same_hash); /* replaces: needs no memory */
		else
			hashmap_del(&fs->by_hash, hash);
	} else {
		while (first->same_hash != f)
			first = first->same_hash;
		first->same_hash = f->same_hash;
	}
	fs->all[f->id] = NULL;
	fs->dropped_ns[f->id] = now;
	free_file(f);
}

void file_index_trim(struct files *fs, uint64_t now)
{
	uint32_t cap = fs->cap;

	fs->lowest = 1;
	while (fs->n > 1 && is_free(fs, fs->n - 1, now))
		fs->n--;
	while (cap > MIN_CAP && fs->n < cap / 4)
		cap /= 2;
	if (cap < fs->cap)
		resize(fs, cap); /* without memory it keeps its size */
}

void file_index_fini(struct files *fs)
{
	hashmap_fini(&fs->by_hash);
	free(fs->all);
	free(fs->dropped_ns);
}
