/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/dwarf
/* Code made at run time, as the core hands it over; and sections that no core writes. */
#include "code/madefile.h"

#include "test.h"

static uint64_t words[16];
static uint64_t len; /* bytes of the section; 0: there is none */

static int section(uint64_t file, const char *name, struct fusee_section *s)
{
	if (!len || strcmp(name, MADEFILE_SECTION))
		return -ENOENT;
	s->bytes.p = (const char *)words;
	s->bytes.len = len;
	return 0;
}

static const struct fusee_unwinder_host host = {.size = sizeof(host), .file_section = section};

static struct rows rows;

static int add(void)
{
	struct table_build build;
	int err = table_build_init(&build);

	rows_fini(&rows);
	if (!err)
		err = madefile_add(&build, &host, 1, &rows);
	table_build_fini(&build);
	return err;
}

/* Two pieces: push %rbx; pop %rbx; ret at 0x100, and ret at 0x200. */
static void write_two(void)
{
	static const uint64_t two[] = {2, 2, 0x100, 3, 0x200, 1, 0x100 << 1, 0x200 << 1 | 1};

	memcpy(words, two, sizeof(two));
	memcpy(words + 8, "\x53\x5b\xc3\xc3", 4);
	len = sizeof(two) + 4;
}

TEST(two_pieces)
{
	write_two();
	CHECK_INT(add(), 0);
	CHECK_INT(rows.n, 6);
	CHECK_INT(rows.p[0], ROW(0x100, DWARF_RULE_SP(1, 0)));
	CHECK_INT(rows.p[1], ROW(0x101, DWARF_RULE_SP(2, 0)));
	CHECK_INT(rows.p[2], ROW(0x102, DWARF_RULE_SP(1, 0)));
	CHECK_INT(rows.p[3], ROW(0x103, DWARF_RULE_NONE));
	CHECK_INT(rows.p[4], ROW(0x200, DWARF_RULE_SP(1, 0)));
	CHECK_INT(rows.p[5], ROW(0x201, DWARF_RULE_NONE));
}

TEST(another_file)
{
	len = 0;
	CHECK_INT(add(), -ENOENT);
}

/* Each word in turn has values that lead outside. */
TEST(damaged)
{
	static const uint64_t values[] = {0, 3, 1ull << 32, 1ull << 60, ~0ull};

	for (uint32_t i = 0; i < 6; i++)
		for (uint32_t k = 0; k < 5; k++) {
			int err;

			write_two();
			words[i] = values[k];
			err = add();
			CHECK(err == -EBADMSG || err == -E2BIG || !err);
			CHECK(err || i); /* with another number of pieces nothing fits */
		}
}

TEST(every_length)
{
	write_two();
	for (uint64_t n = len - 1; n; n--) {
		len = n;
		CHECK_INT(add(), -EBADMSG);
	}
}

/* A piece far from the first has no rows: the index would take too much memory. */
TEST(far)
{
	write_two();
	words[4] = 0x100 + MADEFILE_MAX_SPAN + 1;
	words[7] = words[4] << 1 | 1;
	CHECK_INT(add(), 0);
	CHECK_INT(rows.n, 4);
}
