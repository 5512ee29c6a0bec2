/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/process
#include "test.h"

#include "process/call.h"
#include "process/seen_frames.h"

#define WORD 0x401234u /* of the interpreter's caller */

static uint64_t now;

/* Adds a sample of this pc with these offsets, which end with 1, and the word at the nearest. */
static bool add(struct seen_frames *s, uint64_t pc, const uint16_t *offsets, uint64_t word,
		uint16_t *nearest)
{
	struct seen_sample sample = {.process = 1, .pc = pc, .map_lo = 0x1000, .time = ++now};

	while (offsets[sample.n] != 1) {
		sample.offsets[sample.n] = offsets[sample.n];
		sample.n++;
	}
	*nearest = seen_frames_add(s, &sample);
	return seen_frames_confirm(s, &sample, *nearest, word);
}

#define OFFSETS(...) ((const uint16_t[]){__VA_ARGS__, 1})

TEST(an_offset_is_that_which_all_samples_of_a_place_allow)
{
	struct seen_frames *s = seen_frames_new();
	uint16_t nearest;

	CHECK(!add(s, 10, OFFSETS(8, 40, 88, 120), WORD, &nearest));
	CHECK_INT(nearest, 8);
	CHECK(!add(s, 10, OFFSETS(24, 40, 88, 120), WORD, &nearest));
	CHECK_INT(nearest, 40);
	CHECK(add(s, 10, OFFSETS(8, 88, 120), WORD, &nearest));
	CHECK_INT(nearest, 88);
	/* of another process nothing is known */
	CHECK(!seen_frames_trusted(s, 2, 0x1000, WORD));
	seen_frames_free(s);
}

TEST(a_sample_counts_once)
{
	struct seen_frames *s = seen_frames_new();
	uint16_t nearest;

	add(s, 10, OFFSETS(88), WORD, &nearest);
	for (int i = 0; i < 9; i++) {
		now--;
		CHECK(!add(s, 10, OFFSETS(88), WORD, &nearest));
	}
	seen_frames_free(s);
}

TEST(other_code_at_a_place_begins_again)
{
	struct seen_frames *s = seen_frames_new();
	uint16_t nearest;

	for (int i = 0; i < 100; i++)
		add(s, 10, OFFSETS(88, 120), WORD, &nearest);
	CHECK(seen_frames_settled(s, 1, 10, &nearest) && nearest == 88);
	seen_frames_forget(s, 1, 10);
	CHECK(!seen_frames_settled(s, 1, 10, &nearest));
	CHECK(!add(s, 10, OFFSETS(24, 200), WORD, &nearest));
	CHECK_INT(nearest, 24);
	seen_frames_free(s);
}

TEST(a_mapping_confirms_the_offsets_of_its_places)
{
	struct seen_frames *s = seen_frames_new();
	uint16_t nearest;

	for (int i = 0; i < 3; i++)
		add(s, 10, OFFSETS(88, 120), WORD, &nearest);
	CHECK(add(s, 11, OFFSETS(88, 160), WORD, &nearest));
	CHECK(!add(s, 12, OFFSETS(24, 88), WORD, &nearest));
	seen_frames_free(s);
}

TEST(a_word_of_few_samples_is_not_trusted)
{
	struct seen_frames *s = seen_frames_new();
	uint16_t nearest;

	for (int i = 0; i < 6; i++) {
		CHECK_INT(seen_frames_trusted(s, 1, 0x1000, WORD), i == 6);
		add(s, 10, OFFSETS(88), WORD, &nearest);
	}
	CHECK(seen_frames_trusted(s, 1, 0x1000, WORD));
	/* 5,000 samples of the mapping have other words */
	for (uint64_t i = 0; i < 5000; i++)
		add(s, 10, OFFSETS(88), WORD + 1 + i % 3, &nearest);
	CHECK(!seen_frames_trusted(s, 1, 0x1000, WORD));
	CHECK(seen_frames_trusted(s, 1, 0x1000, WORD + 1));
	/* a word replaces that of the fewest samples */
	for (uint64_t i = 0; i < 100; i++)
		add(s, 10, OFFSETS(88), 0x500000 + i, &nearest);
	CHECK(seen_frames_trusted(s, 1, 0x1000, WORD + 3));
	seen_frames_free(s);
}

TEST(places_that_were_sampled_long_ago_are_forgotten)
{
	struct seen_frames *s = seen_frames_new();
	uint16_t nearest;

	for (int i = 0; i < 100; i++)
		add(s, 10, OFFSETS(88), WORD, &nearest);
	CHECK(seen_frames_settled(s, 1, 10, &nearest));
	for (uint64_t pc = 1000; pc < 101000; pc++)
		add(s, pc, OFFSETS(88), WORD, &nearest);
	CHECK(!seen_frames_settled(s, 1, 10, &nearest));
	seen_frames_free(s);
}

/* The ends of instructions, as the assembler writes them. */
TEST(calls_are_known_by_their_bytes)
{
	static const struct {
		unsigned char code[CALL_BYTES];
		bool is;
	} of[] = {
		{"\x90\x90\xe8\x10\x00\x00\x00", true},  /* call rel32 */
		{"\x90\x90\x90\x90\x90\xff\xd0", true},  /* *%rax */
		{"\x90\x90\x90\x90\x90\xff\x10", true},  /* *(%rax) */
		{"\x90\x90\x90\x90\xff\x14\x24", true},  /* *(%rsp) */
		{"\x90\x90\x90\x90\xff\x50\x10", true},  /* *16(%rax) */
		{"\x90\x90\x90\xff\x54\x24\x18", true},  /* *24(%rsp) */
		{"\x90\xff\x15\x00\x01\x00\x00", true},  /* *256(%rip) */
		{"\x90\xff\x93\x00\x10\x00\x00", true},  /* *4096(%rbx) */
		{"\xff\x14\xd5\x00\x50\x00\x00", true},  /* *0x5000(,%rdx,8) */
		{"\xff\x94\x24\x00\x01\x00\x00", true},  /* *256(%rsp) */
		{"\x90\x90\x90\x90\x90\xff\xe0", false}, /* jmp *%rax */
		{"\x90\x90\x90\x90\x90\xff\x14", false}, /* half of one */
		{"\x90\x90\xe9\x10\x00\x00\x00", false}, /* jmp rel32 */
		{"\x90\x90\x90\x90\x90\x90\xc3", false}, /* ret */
		{"\x90\x90\x90\xff\x10\x90\x90", false}, /* a call before others */
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		CHECK_INT(call_ends(of[i].code), of[i].is);
}
