/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind
#include "test.h"

#include "unwind/internal/walk_frames.h"

static struct walk w;

/* Puts frames whose addresses are 0, 1, .. */
static void put(uint32_t n, uint32_t most)
{
	walk_clear(&w, most);
	for (uint32_t i = 0; i < n; i++) {
		const struct walk_frame f = {.kind = FRAME_FILE, .file = 1, .addr = i};

		CHECK_INT(walk_put(&w, &f), i < most);
	}
}

/* Are the frames [from, to) those whose addresses begin with `first`? */
static void check_range(uint32_t from, uint32_t to, uint32_t first)
{
	uint32_t wrong = 0;

	for (uint32_t i = from; i < to; i++)
		wrong += w.frames[i].kind != FRAME_FILE || w.frames[i].addr != first + i - from;
	CHECK_INT(wrong, 0);
}

TEST(stacks_that_are_kept_have_all_frames)
{
	static const uint32_t depths[] = {0,
					  1,
					  WALK_INNER_FRAMES,
					  WALK_INNER_FRAMES + 1,
					  WALK_MAX_FRAMES - 1,
					  WALK_MAX_FRAMES};

	for (uint32_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		put(depths[i], WALK_MOST_FRAMES);
		walk_close(&w);
		CHECK_INT(w.n, depths[i]);
		CHECK_INT(w.outer, 0);
		check_range(0, w.n, 0);
	}
}

TEST(deeper_stacks_have_both_ends)
{
	static const struct {
		uint32_t omitted, least;
	} cases[] = {{1, 1},       {2, 2},       {3, 2},       {700, 512},
		     {2111, 2048}, {2112, 2048}, {2113, 2048}, {100000, 65536}};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t depth = WALK_MAX_FRAMES + cases[i].omitted;

		put(depth, WALK_MOST_FRAMES);
		walk_close(&w);
		CHECK_INT(w.n, WALK_MAX_FRAMES + 1);
		check_range(0, WALK_INNER_FRAMES, 0);
		CHECK_INT(w.frames[WALK_INNER_FRAMES].kind, FRAME_OMITTED);
		CHECK_INT(w.frames[WALK_INNER_FRAMES].addr, cases[i].least);
		check_range(WALK_INNER_FRAMES + 1, w.n, depth - WALK_OUTER_FRAMES);
	}
}

TEST(a_walk_that_was_given_up_has_its_inner_frames)
{
	put(WALK_COPY_FRAMES + 3, WALK_COPY_FRAMES);
	walk_drop_outer(&w);
	walk_close(&w);
	CHECK_INT(w.n, WALK_INNER_FRAMES);
	check_range(0, w.n, 0);
}
