// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/inspection/cache.c core/inspection/block.c core/worker/refusals.c core/inspection/owner.c core/base/pread.c
// sources: core/inspection/used_pages.c
// sources: core/base/hashmap.c core/base/buf.c core/base/text.c core/base/utf8.c
// libs: -lcrypto
// clang-format on
// Files of the cache's folder, damaged in any way: an inspection that is read leads nowhere outside
// of itself, a file that is not believed is removed, pages that were used are the table's, and a
// list of refusals stays bounded.
#include "fuzz.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/text.h"
#include "plugin/plugin.h"
#include "inspection/internal/cache.h"
#include "inspection/internal/block.h"
#include "inspection/used_pages.h"
#include "worker/internal/refusals.h"

#define HEAD 64u /* bytes of a file's head: magic, versions, bytes, checksum, key */

static char dir[200];
static struct cache *cache;

/* What owner.c has of another room. */
struct plugin_stamp plugin_stamp(const struct fusee_plugin *p)
{
	(void)p;
	return (struct plugin_stamp){0};
}

/* Beside the program: the folder of an earlier run is used again. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	snprintf(dir, sizeof(dir), "%s.folder", (*argv)[0]);
	if (cache_open(&cache, dir, 8 << 20))
		abort();
	return 0;
}

static void write_file(const char *name, const void *p, size_t len)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, p, len) != (ssize_t)len)
		abort();
	close(fd);
}

static bool is_present(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

static void believe(struct inspection *i)
{
	uint64_t vaddr;
	uint32_t sum = 0;

	for (uint32_t s = 0; s < i->nslabs; s++)
		for (uint64_t w = 0; w < i->slabs[s].n; w++)
			sum ^= i->slabs[s].words[w];
	__asm__ volatile("" : : "r"(sum));
	for (uint32_t s = 0; s < i->nsegments; s++)
		inspection_vaddr(i, i->segments[s].offset, &vaddr);
	if (strchr(i->debuglink, '/'))
		abort();
	inspection_unref(i);
}

/* A file of used pages that is believed has bits of its table's pages only. */
static void load_used_pages(const uint8_t *key, uint32_t n)
{
	size_t bytes = used_pages_bytes(n);
	struct used_pages *u = malloc(bytes);

	if (!u)
		abort();
	if (!cache_read_block(cache, key, INSPECTION_VERSION, u, bytes) &&
	    used_pages_are_valid(u, bytes, n))
		for (uint32_t i = 0; i < n + 16; i++)
			if (used_pages_have(u, i) && i >= n)
				abort();
	free(u);
}

/* how & 1: the bytes are a complete file; else they are a block behind a right head. */
static void load(uint8_t how, const uint8_t *data, size_t size)
{
	static const uint8_t key[32] = {1, 2, 3};
	static char file[HEAD + (1 << 17)];
	char name[65];
	struct inspection *i;
	uint64_t bytes = size, sum = XXH3_64bits(data, size);
	uint32_t versions[2] = {2, INSPECTION_VERSION};
	size_t head = how & 1 ? 0 : HEAD;
	int r;

	if (head) {
		memcpy(file, "fusee-i\n", 8);
		memcpy(file + 8, versions, 8);
		memcpy(file + 16, &bytes, 8);
		memcpy(file + 24, &sum, 8);
		memcpy(file + 32, key, 32);
	}
	memcpy(file + head, data, size);
	text_hex(name, key, 32);
	write_file(name, file, head + size);
	cache_expect(cache, key);
	if (how & 4) {
		load_used_pages(key, how >> 3);
		return;
	}
	r = cache_load(cache, key, &i);
	if (!r)
		believe(i);
	else if (r == -ENOENT && is_present(name))
		abort();
}

static void texts(const uint8_t *data, size_t size)
{
	struct refusals all = {0};
	struct buf text = {0}, again = {0};

	write_file("refused", data, size);
	if (!cache_text(cache, "refused", &text) && !buf_add(&text, "", 1)) {
		refusals_read(&all, text.p);
		if (all.n > REFUSALS_MAX)
			abort();
		for (const struct refusal *r = all.first; r; r = r->next)
			if (r->err >= 0 || !r->name || !r->text || strchr(r->name, '\n'))
				abort();
		refusals_write(&all, &again);
		if (again.len && memchr(again.p, '\n', again.len) != again.p + again.len - 1)
			abort();
	}
	refusals_fini(&all);
	buf_fini(&text);
	buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || size > 1 << 17)
		return 0;
	if (data[0] & 2)
		texts(data + 1, size - 1);
	else
		load(data[0], data + 1, size - 1);
	return 0;
}
