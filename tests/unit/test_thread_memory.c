// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/stop core/dump
/* Pages of another thread's memory: holes, memory that is not mapped, and a copy of the stack. */
#include "stop/thread_memory.h"

#include "test.h"

#define PAGE 4096u
#define PAGES 200u

/* Memory whose words are their own addresses, with a page in it that cannot be read. The process
 * reads itself, as process_vm_readv() permits. */
static char *make_memory(uint32_t hole)
{
	char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	CHECK(at != MAP_FAILED);
	for (uint64_t *w = (uint64_t *)at; (char *)w < at + PAGES * PAGE; w++)
		*w = (uint64_t)(uintptr_t)w;
	CHECK(!mprotect(at + hole * PAGE, PAGE, PROT_NONE));
	return at;
}

static uint64_t address(const char *at)
{
	return (uint64_t)(uintptr_t)at;
}

/* Is what is read there what is there? */
static bool reads(struct thread_memory *m, const char *at, uint32_t len)
{
	char bytes[3 * PAGE];

	memset(bytes, 0x55, sizeof(bytes));
	return !m->reader.read(m->reader.arg, bytes, len, address(at)) && !memcmp(bytes, at, len);
}

TEST(pages_and_holes)
{
	struct thread_memory *m = thread_memory_new();
	char *at = make_memory(100);

	CHECK(m);
	thread_memory_begin(m, getpid(), address(at) + 16);
	CHECK(reads(m, at + 16, 8));
	CHECK(reads(m, at + PAGE - 3, 6)); /* across pages */
	CHECK(reads(m, at + 10 * PAGE, 3 * PAGE));
	CHECK(reads(m, at + 99 * PAGE, PAGE));    /* up to the hole, .. */
	CHECK(!reads(m, at + 100 * PAGE - 4, 8)); /* into it, .. */
	CHECK(!reads(m, at + 100 * PAGE, 8));
	CHECK(reads(m, at + 101 * PAGE, 8)); /* and behind it */
	for (uint32_t i = 0; i < PAGES; i++) /* more pages than are kept */
		CHECK(i == 100 || reads(m, at + i * PAGE + 8, 8));
	CHECK(reads(m, at + 16, 8));
	CHECK(!m->missed);
	CHECK(m->reader.read(m->reader.arg, &(char){0}, 1, 8));
	CHECK(m->reader.read(m->reader.arg, (char[8]){0}, 8, UINT64_MAX - 3));
	thread_memory_free(m);
	munmap(at, PAGES * PAGE);
}

TEST(copy)
{
	struct thread_memory *m = thread_memory_new();
	char *at = make_memory(150);
	char copied[8];

	CHECK(m);
	thread_memory_begin(m, getpid(), address(at) + 16);
	thread_memory_copy(m);
	memcpy(copied, at + 64, 8);
	memset(at + 64, 1, 8); /* the thread goes on */
	CHECK(!reads(m, at + 64, 8));
	memcpy(at + 64, copied, 8);
	CHECK(reads(m, at + 64, 8));
	CHECK(reads(m, at + 31 * PAGE, PAGE));
	CHECK(!m->missed);
	CHECK(!reads(m, at + 32 * PAGE, 8)); /* it was not copied */
	CHECK(m->missed);
	thread_memory_begin(m, getpid(), address(at) + 16);
	CHECK(!m->missed && reads(m, at + 32 * PAGE, 8));
	thread_memory_free(m);
	munmap(at, PAGES * PAGE);
}
