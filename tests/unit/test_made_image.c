/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind
/* The bytes of code made at run time, as a section for the worker. */
#include "unwind/internal/made_image.h"

#include "process/elf.h"
#include "test.h"

#define PIECES 8u

static unsigned char *memory; /* PIECES pieces; the bytes of a piece are its number */
static struct buf section;

static uint64_t word(uint32_t i)
{
	uint64_t w;

	CHECK(8ull * i + 8 <= section.len);
	memcpy(&w, (const char *)section.p + 8ull * i, sizeof(w));
	return w;
}

static struct made_view view(uint64_t *starts, uint32_t n)
{
	uint64_t lo;

	if (!memory) {
		void *p = mmap(NULL, (PIECES + 1) * MADE_PIECE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(p != MAP_FAILED);
		memory = (unsigned char *)p + MADE_PIECE_BYTES -
			 (uint64_t)(uintptr_t)p % MADE_PIECE_BYTES;
		for (uint32_t i = 0; i < PIECES; i++)
			memset(memory + i * MADE_PIECE_BYTES, (int)i, MADE_PIECE_BYTES);
	}
	lo = (uint64_t)(uintptr_t)memory;
	for (uint32_t i = 0; i < n; i++)
		starts[i] += lo << 1;
	buf_reset(&section);
	return (struct made_view){.pid = getpid(),
				  .lo = lo,
				  .hi = lo + PIECES * MADE_PIECE_BYTES,
				  .bias = lo,
				  .starts = starts,
				  .n = n};
}

/* A start in the first piece: itself and the two behind it, in one piece of the section. */
TEST(near)
{
	uint64_t starts[] = {100 << 1 | 1, 50 << 1};
	struct made_view v = view(starts, 2);

	CHECK_INT(made_image_read(NULL, &v, &section), 0);
	CHECK_INT(word(0), 1);
	CHECK_INT(word(1), 2);
	CHECK_INT(word(2), 0);
	CHECK_INT(word(3), 3 * MADE_PIECE_BYTES);
	CHECK_INT(word(4), 50 << 1); /* in order */
	CHECK_INT(word(5), 100 << 1 | 1);
	CHECK_INT(section.len, 48 + 3 * MADE_PIECE_BYTES);
	CHECK_INT(section.p[48], 0);
	CHECK_INT(section.p[section.len - 1], 2);
}

/* Two ranges, of which the second ends with the mapping. */
TEST(apart)
{
	uint64_t starts[] = {0, (7 * MADE_PIECE_BYTES + 1) << 1};
	struct made_view v = view(starts, 2);

	CHECK_INT(made_image_read(NULL, &v, &section), 0);
	CHECK_INT(word(0), 2);
	CHECK_INT(word(4), 6 * MADE_PIECE_BYTES);
	CHECK_INT(word(5), 2 * MADE_PIECE_BYTES);
	CHECK_INT(section.len, 64 + 5 * MADE_PIECE_BYTES);
	CHECK_INT(section.p[section.len - 1], 7);
}

/* Pages that are not there are not in it; a process that is not there is an error. */
TEST(missing)
{
	uint64_t starts[] = {4 * MADE_PIECE_BYTES << 1};
	struct made_view v = view(starts, 1);

	CHECK_INT(munmap(memory + 5 * MADE_PIECE_BYTES, MADE_PIECE_BYTES), 0);
	CHECK_INT(made_image_read(NULL, &v, &section), 0);
	CHECK_INT(word(0), 2);
	CHECK_INT(word(2), 3 * MADE_PIECE_BYTES);
	CHECK_INT(word(3), 2 * MADE_PIECE_BYTES);
	CHECK_INT(word(4), 6 * MADE_PIECE_BYTES);
	CHECK_INT(word(5), MADE_PIECE_BYTES);
	v.pid = 1 << 30;
	buf_reset(&section);
	CHECK_INT(made_image_read(NULL, &v, &section), -ESRCH);
	CHECK_INT(section.len, 0);
}

TEST(file)
{
	struct fusee_section s = {.size = sizeof(s)};
	struct buf b = {0};
	struct elf *elf;
	int fd;

	CHECK_INT(buf_add(&b, "0123456789", 10), 0);
	fd = made_image_file(&b);
	CHECK(fd >= 0);
	CHECK_INT(elf_open(&elf, fd), 0);
	CHECK_INT(elf_section(elf, ".fusee.made", &s), 0);
	CHECK_INT(s.bytes.len, 10);
	CHECK(!memcmp(s.bytes.p, "0123456789", 10));
	elf_close(elf);
	close(fd);
	buf_fini(&b);
	buf_fini(&section);
}
