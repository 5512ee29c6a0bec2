// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/agent
/* The memory that an agent's control group leaves it. */
#include "agent/internal/memory.h"

#include <malloc.h>
#include <semaphore.h>

#include "agent/internal/usage.h"
#include "base/arena.h"
#include "lib/put_file.h"
#include "pipeline/collector.h"
#include "profile/builder.h"

TEST(the_smallest_limit_counts)
{
	const char *dir = test_dir();

	CHECK(memory_limit_of(dir, "/a/b") == UINT64_MAX);
	put_file("a/b/memory.max", "max\n");
	CHECK(memory_limit_of(dir, "/a/b") == UINT64_MAX);
	put_file("a/b/memory.max", "3000\n");
	put_file("a/memory.max", "2000\n");
	CHECK_INT(memory_limit_of(dir, "/a/b"), 2000);
	CHECK_INT(memory_limit_of(dir, "/a/b/none/of/these"), 2000);
	CHECK(memory_limit_of(dir, "/") == UINT64_MAX);
	put_file("memory/memory.limit_in_bytes", "1000\n"); /* version 1 */
	CHECK_INT(memory_limit_of(dir, "/a/b"), 1000);
	put_file("memory/memory.limit_in_bytes", "0\n");
	put_file("a/memory.max", "none");
	CHECK_INT(memory_limit_of(dir, "/a/b"), 3000);
	CHECK(memory_available() > 1 << 20);
}

/* What docs/agent.md says of the unit's MemoryMax=1536M: a third is free. */
TEST(shares)
{
	uint64_t all = 1536u << 20, clean = memory_of_worker(all), code = memory_of_code(all),
		 others = 478 << 20; /* the table's, on 256 CPUs */
	uint64_t workers = clean + 2 * (clean / 2) + 2 * (clean / 4);

	CHECK_INT(workers, 480 << 20);
	CHECK_INT(code, 48 << 20);
	CHECK(others + code + workers <= all / 3 * 2);
	CHECK_INT(memory_of_worker(1u << 30), 128 << 20);
	CHECK_INT(memory_of_worker(64ull << 30), 1 << 30);
	CHECK_INT(memory_of_worker(64 << 20), 96 << 20);
	CHECK_INT(memory_of_code(1u << 30), 32 << 20);
	CHECK_INT(memory_of_code(64 << 20), 32 << 20);
	CHECK_INT(memory_of_code(64ull << 30), 256 << 20);
}

static struct walk stack; /* large */

/* A window of so many different stacks. */
static struct collector *collect(uint32_t stacks)
{
	struct process p = {.id = 1, .pid = 1, .comm = "x"};
	struct collector *c;

	CHECK_INT(collector_new(&c), 0);
	stack.n = 40;
	for (uint32_t i = 0; i < stacks; i++) {
		for (uint32_t k = 0; k < stack.n; k++)
			stack.frames[k] = (struct walk_frame){
				.kind = FRAME_FILE, .file = 1, .addr = i * k % 4001};
		CHECK_INT(collector_add(c, &p, 1, 0, "x", &stack, 0, 1, NULL), 0);
	}
	return c;
}

/* Its profile, by and large. */
static struct builder *build(const struct collector *c)
{
	const struct fusee_profile *profile;
	const int64_t one = 1;
	struct builder *b;
	char name[32];

	CHECK_INT(builder_new(&b), 0);
	builder_type(b, "samples", "count");
	for (uint32_t i = 1; i < c->frames.n; i++) {
		struct fusee_function f = {0};
		struct fusee_location l = {.address = i};
		struct fusee_line line = {0};

		snprintf(name, sizeof(name), "function %u", i);
		f.name = builder_cstr(b, name);
		line.function = builder_function(b, &f);
		builder_location(b, &l, &line, 1);
	}
	for (uint32_t i = 1; i < c->stacks.n; i++) {
		const struct dict_entry *e = &c->stacks.entries[i];
		uint32_t id = builder_stack(b, e->key, e->len / 4);

		CHECK_INT(builder_sample(b, id, NULL, 0, 1, 1, &one), 0);
	}
	CHECK_INT(builder_finish(b, &profile), 0);
	return b;
}

/* What a window of a storm needs is in no heap, where it would lie between what stays, and ends
 * with the window. */
TEST(the_memory_of_a_window_ends_with_it)
{
	size_t arenas = arena_all_bytes(), heap = mallinfo2().uordblks, grown, held;
	struct collector *c = collect(10000);
	struct builder *b = build(c);

	grown = mallinfo2().uordblks - heap;
	held = arena_all_bytes() - arenas;
	CHECK(held > 3u << 20);
	CHECK(grown < held / 10);
	collector_free(c);
	builder_free(b);
	CHECK_INT(arena_all_bytes(), arenas);
	CHECK(mallinfo2().uordblks < heap + 8192); /* with blocks that malloc() keeps at hand */
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they have other heaps */
#define BLOCKS 768u
#define BLOCK (32u << 10)

static sem_t freed, end;

/* Writes to each page, in a way that no compiler leaves out. */
static char *allocate(size_t size)
{
	volatile char *p = malloc(size);

	CHECK(p);
	for (size_t at = 0; at < size; at += 4096)
		p[at] = 1;
	return (char *)p;
}

/* A thread that had 24 MiB in blocks of its own heap, and waits now. */
static void *have_much(void *arg)
{
	char *blocks[BLOCKS];

	for (uint32_t i = 0; i < BLOCKS; i++)
		blocks[i] = allocate(BLOCK);
	for (uint32_t i = BLOCKS; i-- > 0;)
		free(blocks[i]);
	sem_post(&freed);
	sem_wait(&end);
	return NULL;
}

/* glibc's own thresholds grow with the largest block that was freed, and malloc_trim() leaves the
 * ends of the heaps of threads as they are. */
TEST(heaps_of_threads_shrink)
{
	uint64_t before, now;
	char *large;
	pthread_t t;

	memory_prepare();
	large = allocate(16 << 20);
	before = usage_resident_bytes();
	free(large);
	CHECK(usage_resident_bytes() + (12 << 20) < before);
	CHECK(!sem_init(&freed, 0, 0) && !sem_init(&end, 0, 0));
	before = usage_resident_bytes();
	CHECK(!pthread_create(&t, NULL, have_much, NULL));
	CHECK(!sem_wait(&freed));
	memory_trim();
	now = usage_resident_bytes();
	CHECK(now < before + (4 << 20)); /* the kernel counts pages roughly */
	sem_post(&end);
	CHECK(!pthread_join(t, NULL));
}
#endif
