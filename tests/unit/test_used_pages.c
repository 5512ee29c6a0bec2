// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/inspection core/worker
/* Which pages of tables runs have used: kept in the cache, and read as what anybody may have
 * changed. */
#include "inspection/used_pages.h"

#include "lib/cached_worker.h"

#define PAGES 203u
#define BYTES ((PAGES + 7) / 8)

static struct inspection stored = {.is_stored = true, .stored = {1, 2, 3}};

/* Keeps a run that has used every page of this remainder of 5. */
static void keep(struct worker *w, uint32_t remainder)
{
	uint8_t bits[BYTES] = {0};

	for (uint32_t i = remainder; i < PAGES; i += 5)
		bits[i / 8] |= (uint8_t)(1u << i % 8);
	worker_keep_used_pages(w, &stored, "dwarf", PAGES, bits);
	WAIT_FOR(!background_waiting(worker_background(w)));
}

/* Bit r: pages of remainder r are known as used; all of them are or none is. -1: nothing is known.
 */
static int known(struct worker *w)
{
	struct used_pages *u = worker_used_pages(w, &stored, "dwarf", PAGES);
	int remainders = 0;

	if (!u)
		return -1;
	for (uint32_t r = 0; r < 5; r++)
		remainders |= used_pages_have(u, r) << r;
	for (uint32_t i = 0; i < PAGES; i++)
		CHECK_INT(used_pages_have(u, i), remainders >> i % 5 & 1);
	for (uint32_t i = PAGES; i < 2 * PAGES; i++)
		CHECK(!used_pages_have(u, i));
	free(u);
	return remainders;
}

TEST(two_runs_are_remembered)
{
	const struct inspection other = {.is_stored = true, .stored = {1, 2, 4}};
	struct worker *w = start((struct worker_options){.cache_dir = cache_dir()});

	CHECK_INT(known(w), -1);
	keep(w, 1);
	CHECK_INT(known(w), 1 << 1);
	keep(w, 2);
	CHECK_INT(known(w), 1 << 1 | 1 << 2);
	worker_stop(w);

	w = start((struct worker_options){.cache_dir = cache_dir()});
	CHECK_INT(known(w), 1 << 1 | 1 << 2);
	keep(w, 3);
	CHECK_INT(known(w), 1 << 2 | 1 << 3);
	CHECK_INT(cached_files(), 1);
	CHECK(!worker_used_pages(w, &other, "dwarf", PAGES));
	CHECK(!worker_used_pages(w, &stored, "other", PAGES));
	/* A table of another size: what is on disk is of no use. */
	CHECK(!worker_used_pages(w, &stored, "dwarf", PAGES + 1));
	CHECK_INT(cached_files(), 0);
	CHECK_INT(known(w), -1);
	worker_stop(w);
}

TEST(files_that_are_not_on_disk)
{
	const struct inspection not_stored = {0};
	const uint8_t bits[BYTES] = {1};
	struct worker *w = start((struct worker_options){.cache_dir = cache_dir()});

	worker_keep_used_pages(w, &not_stored, "dwarf", PAGES, bits);
	worker_keep_used_pages(w, &stored, "dwarf", 0, bits);
	worker_keep_used_pages(w, &stored, "dwarf", USED_PAGES_MOST + 1, bits);
	WAIT_FOR(!background_waiting(worker_background(w)));
	CHECK_INT(cached_files(), 0);
	CHECK(!worker_used_pages(w, &not_stored, "dwarf", PAGES));
	worker_stop(w);
	w = start((struct worker_options){.cache_dir = NULL});
	keep(w, 1);
	CHECK_INT(known(w), -1);
	worker_stop(w);
	worker_keep_used_pages(NULL, &stored, "dwarf", PAGES, bits);
	CHECK(!worker_used_pages(NULL, &stored, "dwarf", PAGES));
}

/* Each byte of the file is changed, and the file is truncated at each. */
TEST(damaged_files)
{
	struct worker *w = start((struct worker_options){.cache_dir = cache_dir()});
	char pattern[120], path[160] = "";
	struct stat st;
	FILE *found;

	keep(w, 0);
	snprintf(pattern, sizeof(pattern), "find %s -type f", cache_dir());
	found = popen(pattern, "r");
	CHECK(found && fscanf(found, "%159s", path) == 1);
	pclose(found);
	CHECK(!stat(path, &st));
	for (off_t at = 0; at < st.st_size; at++)
		for (int shorter = 0; shorter < 2; shorter++) {
			int fd = open(path, O_RDWR | O_CLOEXEC);
			uint8_t byte;

			CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
			byte ^= 0x40;
			CHECK(shorter ? !ftruncate(fd, at) : pwrite(fd, &byte, 1, at) == 1);
			close(fd);
			CHECK_INT(known(w), -1);
			CHECK_INT(access(path, F_OK), -1);
			keep(w, 0);
			CHECK_INT(known(w), 1);
		}
	worker_stop(w);
}

/* A block with the right checksum may have any content. */
TEST(blocks_that_lie)
{
	uint8_t bits[BYTES];
	struct used_pages *u = calloc(1, used_pages_bytes(PAGES) + 8);

	CHECK(u);
	memset(bits, 0xff, sizeof(bits));
	bits[BYTES - 1] = (1u << PAGES % 8) - 1;
	used_pages_next(u, PAGES, bits, NULL);
	CHECK(used_pages_are_valid(u, used_pages_bytes(PAGES), PAGES));
	for (uint32_t i = 0; i < 2 * PAGES; i++)
		CHECK_INT(used_pages_have(u, i), i < PAGES);
	CHECK(!used_pages_are_valid(u, used_pages_bytes(PAGES), PAGES - 1));
	CHECK(!used_pages_are_valid(u, used_pages_bytes(PAGES) - 1, PAGES));
	CHECK(!used_pages_are_valid(u, used_pages_bytes(PAGES) + 8, PAGES));
	u->bits[2 * BYTES - 1] = 1u << PAGES % 8; /* behind the last page */
	CHECK(!used_pages_are_valid(u, used_pages_bytes(PAGES), PAGES));
	u->bits[2 * BYTES - 1] = 0;
	u->bits[BYTES - 1] = 0xff;
	CHECK(!used_pages_are_valid(u, used_pages_bytes(PAGES), PAGES));
	free(u);
}
