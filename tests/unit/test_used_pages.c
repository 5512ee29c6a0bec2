// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/inspection core/worker
/* Which pages of tables runs have used: kept in the cache, and read as what anybody may have
 * changed. */
#include "inspection/used_pages.h"

#include <fusee/unwinder.bpf.h>

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

/* ---- a table that is made again ---- */

#define WORDS (20 * FUSEE_PAGE_WORDS)

static uint32_t some_word(uint64_t i)
{
	return (uint32_t)((i + 1) * 0x9e3779b97f4a7c15ull >> 32);
}

/* The earlier table with so many new words before each of these pages. The words of the first two
 * pages are others, as those of an index are. Returns its number of words. */
static uint64_t make_again(uint32_t *words, const uint32_t *before, const uint32_t new_before[20])
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < WORDS; i++) {
		if (i % FUSEE_PAGE_WORDS == 0)
			for (uint32_t k = 0; k < new_before[i / FUSEE_PAGE_WORDS]; k++, n++)
				words[n] = ~some_word(n);
		words[n++] = i < 2 * FUSEE_PAGE_WORDS ? ~before[i] : before[i];
	}
	return n;
}

static void check_carried(const uint32_t new_before[20])
{
	static uint32_t before[WORDS], words[20 * WORDS];
	uint64_t n, at, behind = 0;

	for (uint32_t i = 0; i < WORDS; i++)
		before[i] = some_word(i);
	n = make_again(words, before, new_before);
	for (uint32_t page = 0; page < 20; page++) {
		uint8_t bits[3] = {0};
		struct used_pages *u;

		bits[page / 8] = (uint8_t)(1u << page % 8);
		u = used_pages_carry(before, WORDS, bits, words, n);
		CHECK(u && u->n == (n + FUSEE_PAGE_WORDS - 1) / FUSEE_PAGE_WORDS);
		behind += new_before[page];
		at = page * FUSEE_PAGE_WORDS + (page < 2 ? 0 : behind);
		CHECK(used_pages_have(u, (uint32_t)(at / FUSEE_PAGE_WORDS)));
		CHECK(used_pages_have(u,
				      (uint32_t)((at + FUSEE_PAGE_WORDS - 1) / FUSEE_PAGE_WORDS)));
		CHECK_INT(used_pages_count(u), at % FUSEE_PAGE_WORDS ? 2 : 1);
		free(u);
	}
}

TEST(pages_of_a_table_that_is_made_again)
{
	static const uint32_t none[20],
		one[20] = {[3] = 1, [9] = 5 * FUSEE_PAGE_WORDS},
		many[20] = {[2] = 700, [5] = 100, [19] = 2000},
		far[20] = {[4] = 60000, [8] = 60000, [12] = 60000, [16] = 60000};
	static uint32_t equal[WORDS];
	const uint8_t bits[3] = {0, 1}, no_bits[3] = {0};
	struct used_pages *u;

	check_carried(none);
	check_carried(one);
	check_carried(many);
	check_carried(far);
	/* a page of equal words says nothing of where it is */
	u = used_pages_carry(equal, WORDS - 1000, bits, equal, WORDS);
	CHECK(u && used_pages_have(u, 8) && used_pages_count(u) == 1);
	free(u);
	CHECK(!used_pages_carry(equal, WORDS, no_bits, equal, WORDS));
	CHECK(!used_pages_carry(equal, WORDS, bits, equal, WORDS - 1)); /* it lacks something */
}
