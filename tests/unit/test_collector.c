// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/pipeline
/* Memory of the samples of windows: a process with ever new stacks loses its own, no other's. */
#include "pipeline/collector.h"

#include <errno.h>
#include <stdlib.h>

#include "../../bpf/records.h"
#include "profiler/internal/build_times.h"
#include "test.h"

#define LIMIT (4u << 20)

static struct walk stack; /* large */

/* A sample of a process, of so many frames; `number` makes it different from others. */
static int add(struct collector *c, uint64_t process, uint32_t number, uint32_t frames)
{
	struct process p = {.id = process, .pid = (pid_t)process, .comm = "x"};

	stack.n = frames;
	memset(stack.frames, 0, frames * sizeof(*stack.frames));
	for (uint32_t i = 0; i < frames; i++)
		stack.frames[i].addr = i % 7 ? i : (uint64_t)process << 40 | number;
	return collector_add(c, &p, 1, 0, "x", &stack, 0, 1, NULL);
}

TEST(ever_new_stacks)
{
	struct collector *c;
	uint32_t added = 0;
	uint64_t full;

	collector_set_limit(LIMIT);
	CHECK_INT(collector_new(&c), 0);
	while (added < 1u << 20 && !add(c, 1, added, 500))
		added++;
	CHECK(added > 100 && added < 1u << 20);
	CHECK_INT(add(c, 1, added, 500), -E2BIG);
	full = collector_bytes();
	CHECK(full > LIMIT / 16 && full < LIMIT / 4);
	/* what is known is counted on, and the sample without frames has room */
	CHECK_INT(add(c, 1, 0, 500), 0);
	CHECK_INT(collector_add(c, &(struct process){.id = 1}, 1, 0, "", NULL, 5, 1, NULL), 0);
	/* another process has room */
	for (uint32_t i = 0; i < 50; i++)
		CHECK_INT(add(c, 2, i, 100), 0);
	CHECK_INT(c->count, added + 1 + 1 + 50);
	collector_free(c);
	CHECK_INT(collector_bytes(), 0);
}

/* Samples of one stack with ids and without are one entry, whose parts are apart; times too. */
TEST(ids_behind_entries)
{
	const struct sample_ids a = {.trace_id = {1, 2}, .span_id = 3},
				b = {.trace_id = {1, 2}, .span_id = 4};
	const struct sample_ids *const ids[] = {&a, NULL, &b, &a, NULL, &a};
	struct process p = {.id = 1, .comm = "x"};
	struct sample_sum *rest;
	struct collector *c;
	uint64_t *times;
	uint32_t *first;

	collector_set_limit(0);
	CHECK_INT(collector_new(&c), 0);
	c->start_ns = c->start_wall_ns = 0;
	stack.n = 0;
	for (uint32_t i = 0; i < 6; i++) {
		const struct collected_at at = {100 + i, 0};

		CHECK_INT(collector_add(c, &p, 1, 0, "x", &stack, 0, 10 + i, &at), 0);
		if (ids[i])
			collector_set_ids(c, ids[i]);
	}
	CHECK_INT(c->samples.n, 2);
	CHECK_INT(c->sums[1].count, 6);
	CHECK_INT(c->ids.n, 3);
	CHECK_INT(c->of_ids[1].count, 3);
	CHECK_INT(c->of_ids[1].weight, 10 + 13 + 15);
	CHECK_INT(c->of_ids[2].count, 1);
	CHECK_INT(c->of_ids[2].weight, 12);
	CHECK_INT(collector_without_ids(c, &rest), 0);
	CHECK_INT(rest[1].count, 2);
	CHECK_INT(rest[1].weight, 11 + 14);
	free(rest);
	CHECK_INT(build_sort_times(c, &times, &first), 0);
	CHECK_INT(first[2] - first[1], 2);
	CHECK_INT(times[first[1]], 101);
	CHECK_INT(times[first[1] + 1], 104);
	CHECK_INT(first[c->samples.n + 2] - first[c->samples.n + 1], 3);
	CHECK_INT(times[first[c->samples.n + 1] + 2], 105);
	CHECK_INT(times[first[c->samples.n + 2]], 102);
	free(times);
	free(first);
	collector_free(c);
	CHECK_INT(collector_bytes(), 0);
}

/* What finds no room is counted, and still in the sums. */
TEST(ever_new_ids)
{
	struct sample_sum *rest;
	struct collector *c;

	collector_set_limit(0);
	CHECK_INT(collector_new(&c), 0);
	for (uint32_t i = 1; i <= 70000; i++) {
		CHECK_INT(add(c, 1, 0, 5), 0);
		collector_set_ids(c, &(struct sample_ids){.trace_id = {7, i}, .span_id = i});
	}
	CHECK_INT(c->ids.n - 1, 65536);
	CHECK_INT(c->unkept_ids, 70000 - 65536);
	CHECK_INT(c->count, 70000);
	CHECK_INT(collector_without_ids(c, &rest), 0);
	CHECK_INT(rest[1].count, 70000 - 65536);
	free(rest);
	collector_free(c);
}

/* Labels are kept by their texts, wherever those are; their memory is the process's. */
TEST(labels_behind_entries)
{
	unsigned char text[2][4] = {{1, 1, 'k', 'a'}, {1, 1, 'k', 'b'}}, same[4];
	struct collector *c;

	memcpy(same, text[0], sizeof(same));
	collector_set_limit(0);
	CHECK_INT(collector_new(&c), 0);
	for (uint32_t i = 0; i < 4; i++) {
		CHECK_INT(add(c, 1, 0, 5), 0);
		collector_set_ids(c, &(struct sample_ids){.texts = i == 3 ? same : text[i % 2],
							  .texts_len = 4});
	}
	CHECK_INT(c->samples.n - 1, 1);
	CHECK_INT(c->texts.n - 1, 2);
	CHECK_INT(c->ids.n - 1, 2);
	CHECK_INT(c->of_ids[1].count, 3);
	CHECK_INT(c->of_ids[2].count, 1);
	collector_free(c);
	CHECK_INT(collector_bytes(), 0);
}

/* A program that labels each sample anew has so many, and no more memory than others. */
TEST(ever_new_labels)
{
	unsigned char text[1600] = {60, 128};
	struct sample_sum *rest;
	struct collector *c;

	for (uint32_t limit = 0; limit < 2; limit++) {
		collector_set_limit(limit * LIMIT);
		CHECK_INT(collector_new(&c), 0);
		for (uint32_t i = 1; i <= 70000; i++) {
			CHECK_INT(add(c, 1, 0, 5), 0);
			memcpy(text + 100, &i, sizeof(i));
			collector_set_ids(
				c, &(struct sample_ids){.texts = text, .texts_len = sizeof(text)});
		}
		CHECK(limit ? c->ids.n < 60000 : c->ids.n - 1 == 65536);
		CHECK(!limit || collector_bytes() < LIMIT);
		CHECK_INT(c->unkept_ids, 70000 - (c->ids.n - 1));
		CHECK_INT(collector_without_ids(c, &rest), 0);
		CHECK_INT(rest[1].count, c->unkept_ids);
		free(rest);
		collector_free(c);
	}
}

/* Hundreds of such processes: others still have room, and the limit holds. */
TEST(many_processes)
{
	struct collector *c[2];
	uint32_t refused = 0;

	collector_set_limit(LIMIT);
	CHECK_INT(collector_new(&c[0]), 0);
	CHECK_INT(collector_new(&c[1]), 0);
	for (uint32_t i = 0; i < 400; i++)
		for (uint64_t process = 1; process <= 200; process++)
			refused += add(c[i % 2], process, i, 300) == -E2BIG;
	CHECK(refused > 1000);
	CHECK(collector_bytes() < LIMIT);
	for (uint32_t i = 0; i < 5; i++)
		CHECK_INT(add(c[0], 1000, i, 30), 0);
	CHECK_INT(collector_bytes(), c[0]->bytes + c[1]->bytes);
	collector_free(c[0]);
	CHECK_INT(collector_bytes(), c[1]->bytes);
	collector_free(c[1]);
}

TEST(without_a_limit)
{
	struct collector *c;

	collector_set_limit(0);
	CHECK_INT(collector_new(&c), 0);
	for (uint32_t i = 0; i < 5000; i++)
		CHECK_INT(add(c, 1, i, 500), 0);
	CHECK(collector_bytes() > 5000 * 500 * 4);
	collector_free(c);
}

/* A frame with each field that its kind has. */
static struct walk_frame frame_of(uint32_t i)
{
	static const struct walk_frame all[] = {
		{.kind = FRAME_FILE, .file = 3, .addr = 0x1000},
		{.kind = FRAME_FILE, .file = 3, .addr = 0x1000, .guessed = 1},
		{.kind = FRAME_FILE, .file = 4, .addr = 0x1000},
		{.kind = FRAME_KERNEL, .addr = 0x1000},
		{.kind = FRAME_OMITTED, .addr = 0x1000},
		{.kind = FRAME_ANONYMOUS, .addr = 0x1000, .process = 7, .generation = 1},
		{.kind = FRAME_ANONYMOUS, .addr = 0x1000, .process = 7, .generation = 2},
		{.kind = FRAME_ANONYMOUS, .addr = 0x1000, .process = 8, .generation = 1},
		{.kind = FRAME_PUSHED, .addr = 0x1000, .process = 8, .extra = {1, 2, 3}},
		{.kind = FRAME_PUSHED, .addr = 0x1000, .process = 8, .extra = {1, 2, 4}},
		{.kind = FRAME_PUSHED, .addr = 0x1000, .process = 8, .flags = 5},
	};
	uint32_t n = sizeof(all) / sizeof(*all);
	struct walk_frame f = all[i % n];

	f.addr += i / n;
	return f;
}

/* Each is one number, by which all its fields are found again. */
TEST(frames_are_numbered)
{
	enum { FRAMES = 50000 };
	struct arena arena = {0};
	struct frame_set s;

	CHECK_INT(frame_set_init(&s, &arena), 0);
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct walk_frame f = frame_of(i);

		CHECK_INT(frame_set_find(&s, &f), FRAME_SET_NONE);
		CHECK_INT(frame_set_add(&s, &f), i + 1);
	}
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct walk_frame f = frame_of(i), got = frame_set_at(&s, i + 1);

		CHECK(!memcmp(&f, &got, sizeof(f)));
		CHECK_INT(frame_set_find(&s, &f), i + 1);
		CHECK_INT(frame_set_add(&s, &f), i + 1);
	}
	CHECK_INT(s.n, FRAMES + 1);
	arena_fini(&arena);
}

TEST(a_frame_of_a_file_takes_few_bytes)
{
	struct arena arena = {0};
	struct frame_set s;
	uint64_t empty;

	CHECK_INT(frame_set_init(&s, &arena), 0);
	empty = frame_set_bytes(&s);
	for (uint32_t i = 0; i < 1000; i++)
		frame_set_add(&s, &(struct walk_frame){.kind = FRAME_FILE, .file = 1, .addr = i});
	CHECK(frame_set_bytes(&s) - empty <= 1000 * 32);
	CHECK(s.cap * sizeof(*s.heads) + s.nslots * sizeof(*s.slots) <= 1024 * 32);
	arena_fini(&arena);
}

/* Hits of less than a period represent several, in parts too. */
TEST(hits)
{
	struct collected_hit hit = {.set = 1, .value = 400};
	struct process p = {.id = 7};
	struct collector *c;

	stack.n = 0;
	CHECK_INT(collector_new(&c), 0);
	CHECK_INT(collector_add_hit(c, &p, &hit, "x", &stack, 0, 1000, NULL), 0);
	CHECK_INT(collector_add_hit(c, &p, &hit, "x", &stack, 0, 1000, NULL), 0);
	hit.value = 1000; /* for certain: it represents itself */
	CHECK_INT(collector_add_hit(c, &p, &hit, "x", &stack, 0, 1000, NULL), 0);
	CHECK_INT(c->count, 3);
	CHECK_INT(c->weight_ns, 3000);
	CHECK_INT(c->samples.n, 2);
	CHECK_INT(c->sums[1].count, 3);
	CHECK_INT(c->sums[1].weight, 3000);
	CHECK_INT(c->sums[1].hits, 6 * HIT_PARTS);
	collector_free(c);
}

/* Each part of a sample that carries ids is of these ids, and no more; no label is CPU time's. */
TEST(parts_with_ids)
{
	struct collected_parts parts = {
		.set = 1,
		.n = 4,
		.part = {{70, 1, 1}, {30, 2, 0}, {20, 3, 0}, {10, UINT32_MAX, 0}}};
	const struct sample_ids ids = {.span_id = 5};
	struct process p = {.id = 7};
	struct sample_sum *rest;
	struct collector *c;

	stack.n = 0;
	CHECK_INT(collector_new(&c), 0);
	CHECK_INT(collector_add_parts(c, &p, &parts, "x", &stack, 0, NULL), 0);
	collector_set_ids(c, &ids);
	CHECK_INT(c->samples.n, 5);
	CHECK_INT(c->ids.n, 5);
	CHECK_INT(collector_without_ids(c, &rest), 0);
	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;

		CHECK(k->part != 0);
		CHECK_INT(rest[i].count, 0);
		CHECK_INT(rest[i].weight, 0);
		CHECK_INT(c->of_ids[i].weight, parts.part[i - 1].weight);
	}
	free(rest);
	collector_free(c);
}

/* A sample of two parts is one sample of two labels, and of no more value. */
TEST(parts)
{
	struct collected_parts parts = {.set = 1, .n = 2, .part = {{70, 1, 1}, {30, 3, 0}}};
	struct process p = {.id = 7};
	const struct sample_key *k;
	struct collector *c;

	stack.n = 0;
	CHECK_INT(collector_new(&c), 0);
	CHECK_INT(collector_add_parts(c, &p, &parts, "x", &stack, 0, NULL), 0);
	parts.n = 1;
	CHECK_INT(collector_add_parts(c, &p, &parts, "x", &stack, 0, NULL), 0);
	CHECK_INT(c->count, 2);
	CHECK_INT(c->weight_ns, 170);
	CHECK_INT(c->samples.n, 3);
	k = c->samples.entries[1].key;
	CHECK_INT(k->part, 2);
	CHECK_INT(c->sums[1].count, 2);
	CHECK_INT(c->sums[1].weight, 140);
	k = c->samples.entries[2].key;
	CHECK_INT(k->part, 4);
	CHECK_INT(c->sums[2].count, 0);
	CHECK_INT(c->sums[2].weight, 30);
	collector_free(c);
}

/* A hit of this id, of a process and a stack of this number. */
static void follow(struct collector *c, uint32_t process, uint32_t number, uint32_t id)
{
	const struct collected_hit hit = {.set = 1, .value = 50, .followed = id};
	struct process p = {.id = process, .pid = (pid_t)process, .comm = "x"};

	stack.n = 1;
	memset(stack.frames, 0, sizeof(*stack.frames));
	stack.frames[0].addr = number;
	CHECK_INT(collector_add_hit(c, &p, &hit, "x", &stack, 0, 100, NULL), 0);
}

/* What is in use of a stack of this number: bytes. Each is two hits' worth of 50. */
static uint64_t used(const struct collector *c, uint32_t number)
{
	struct followed_sum *sums = followed_sums(&c->followed, c->samples.n, c->ids.n);
	uint64_t weight = 0;

	CHECK(sums);
	for (uint32_t i = 1; i < c->samples.n; i++) {
		const struct sample_key *k = c->samples.entries[i].key;
		uint32_t frame = *(const uint32_t *)c->stacks.entries[k->stack].key;

		CHECK_INT(sums[i].hits, sums[i].weight / 50 * HIT_PARTS);
		if (frame_set_at(&c->frames, frame).addr == number)
			weight += sums[i].weight;
	}
	free(sums);
	return weight;
}

/* What is freed is forgotten; what is not goes to the next window, where it counts as no sample. */
TEST(followed)
{
	const uint32_t first[] = {2, 3, 5}, later[] = {3, 9};
	const struct collector_carrying all = {0};
	struct collector *c, *next;

	CHECK_INT(collector_new(&c), 0);
	for (uint32_t id = 1; id <= 5; id++)
		follow(c, 1 + id % 2, 10 + id % 2, id);
	follow(c, 1, 10, 0); /* not followed */
	CHECK_INT(used(c, 10), 200);
	CHECK_INT(used(c, 11), 300);
	collector_keep(c, first, 3);
	CHECK_INT(used(c, 10), 100);
	CHECK_INT(used(c, 11), 200);
	CHECK_INT(collector_new(&next), 0);
	follow(next, 3, 11, 9);
	CHECK_INT(collector_carry(next, c, &all), 0);
	CHECK_INT(c->count, 6);
	collector_free(c);
	CHECK_INT(next->count, 1);
	CHECK_INT(next->weight_ns, 100);
	CHECK_INT(used(next, 10), 100);
	CHECK_INT(used(next, 11), 300);
	collector_keep(next, later, 2);
	CHECK_INT(used(next, 10), 0);
	CHECK_INT(used(next, 11), 200);
	collector_keep(next, NULL, 0);
	CHECK_INT(used(next, 11), 0);
	collector_free(next);
	CHECK_INT(collector_bytes(), 0);
}

/* Hits that carry ids are apart from the others of their stack. */
TEST(followed_with_ids)
{
	const struct sample_ids ids = {.trace_id = {1, 2}, .span_id = 3};
	struct followed_sum *sums;
	struct collector *c;

	CHECK_INT(collector_new(&c), 0);
	follow(c, 1, 10, 1);
	collector_set_ids(c, &ids);
	follow(c, 1, 10, 2);
	follow(c, 1, 10, 0);
	collector_set_ids(c, &ids);
	sums = followed_sums(&c->followed, c->samples.n, c->ids.n);
	CHECK(sums);
	CHECK_INT(sums[1].weight, 100);
	CHECK_INT(sums[c->samples.n + 1].weight, 100);
	free(sums);
	collector_free(c);
}
