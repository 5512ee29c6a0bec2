// SPDX-License-Identifier: Apache-2.0
// sources: core/names/names.c core/base/buf.c core/base/utf8.c core/base/pread.c
// A table of names with right checksums, as a worker that was taken over writes it, or with wrong
// checksums: texts are printable and nothing outside of the table is read.
#include "fuzz.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/utf8.h"
#include "names/names.h"

static void check_text(const char *text)
{
	if (!utf8_printable(text, strlen(text)))
		abort();
}

static void look_up(struct names_table *t, uint64_t addr)
{
	const struct symbols_frame *f;
	uint32_t n;

	if (names_find(t, addr, &f, &n))
		return;
	if (!n || n > NAMES_MAX_FRAMES)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		check_text(f[i].name);
		check_text(f[i].system_name);
		check_text(f[i].file);
	}
}

/* 3 bytes: how, numbers of rows, frames and functions (4 bits each); then the body behind the head.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char table[1 << 17];
	struct names_head head = {.magic = NAMES_MAGIC, .version = NAMES_VERSION};
	struct names_table *t;
	uint64_t fixed, body, pages;
	int fd;

	if (size < 3 || size > 1 << 16)
		return 0;
	head.rows = data[1] & 15;
	head.frames = data[1] >> 4;
	head.functions = data[2] & 15;
	fixed = head.rows * sizeof(struct names_row) + head.frames * sizeof(struct names_frame) +
		head.functions * sizeof(struct names_function);
	if (size - 3 < fixed)
		return 0;
	head.texts = size - 3 - fixed;
	body = (sizeof(head) + size - 3 + 7) & ~7ull;
	pages = (body + NAMES_PAGE - 1) / NAMES_PAGE;
	head.bytes = body + pages * 8;
	memset(table, 0, head.bytes);
	memcpy(table, &head, sizeof(head));
	memcpy(table + sizeof(head), data + 3, size - 3);
	for (uint64_t i = 0; i < pages && !(data[0] & 1 && i); i++) {
		uint64_t at = i * NAMES_PAGE, n = body - at < NAMES_PAGE ? body - at : NAMES_PAGE;
		uint64_t sum = XXH3_64bits_withSeed(table + at, n, i);

		memcpy(table + body + i * 8, &sum, 8);
	}
	fd = memfd_create("names", MFD_CLOEXEC);
	if (fd < 0 || write(fd, table, head.bytes) != (ssize_t)head.bytes)
		abort();
	if (names_open(&t, fd, 0, head.bytes - (data[0] & 2)))
		return 0;
	for (uint32_t i = 0; i < head.rows; i++) {
		struct names_row row;

		memcpy(&row, table + sizeof(head) + i * sizeof(row), sizeof(row));
		look_up(t, row.lo);
		look_up(t, row.lo - 1);
	}
	look_up(t, UINT64_MAX);
	names_close(t);
	return 0;
}
