/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind
/* Memory of this process with code of a file, or with other bytes, where its segments belong. */
#include "unwind/moved_text.h"

#include <elf.h>

#include "inspection/inspection.h"
#include "lib/random.h"
#include "opener/opener.h"
#include "test.h"

#define PAGE 4096ull
#define CODE (2 * PAGE + 0x123) /* bytes of the first segment with code, from page 1 on */

/* A file of 8 pages, and memory where they belong. */
struct world {
	struct files files;
	struct inspection inspection;
	struct fusee_segment segments[40];
	struct file file;
	struct process process;
	struct process_text text; /* page 0 is mapped */
	unsigned char *at;
	uint64_t lo;
};

static void add(struct world *w, uint64_t page, uint64_t bytes, uint32_t flags)
{
	w->segments[w->inspection.nsegments++] = (struct fusee_segment){.offset = page * PAGE,
									.vaddr = 0x10000 +
										 page * PAGE,
									.filesz = bytes,
									.flags = flags};
}

static void world_new(struct world *w)
{
	unsigned char bytes[8 * PAGE];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)random32();
	*w = (struct world){.inspection = {.segments = w->segments}};
	w->file = (struct file){.files = &w->files,
				.source.readable = true,
				.state = FILE_READY,
				.inspection = &w->inspection,
				.fd = memfd_create("file", MFD_CLOEXEC)};
	CHECK(write(w->file.fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
	w->at = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(w->at != MAP_FAILED);
	memcpy(w->at, bytes, sizeof(bytes));
	w->lo = (uintptr_t)w->at;
	w->process.pid = getpid();
	w->text = (struct process_text){.file = &w->file, .lo = w->lo};
	add(w, 0, PAGE, PF_R);
	add(w, 1, CODE, PF_R | PF_X);
	add(w, 4, PAGE, PF_R);
	add(w, 5, PAGE, PF_R | PF_X);
}

static void world_free(struct world *w)
{
	close(w->file.fd);
	CHECK(!munmap(w->at, 16 * PAGE));
	CHECK_INT(w->file.uses, 0);
}

/* Pages [first, end) of the memory. */
static int compare(struct world *w, uint64_t first, uint64_t end, struct moved_text *part)
{
	const struct process_mapping m = {
		.lo = w->lo + first * PAGE, .hi = w->lo + end * PAGE, .text = w->text};

	return moved_text_compare(&w->process, &m, part);
}

static void check_part(const struct world *w, const struct moved_text *part, uint64_t first,
		       uint64_t end)
{
	CHECK(part->file == &w->file);
	CHECK_INT(part->lo - w->lo, first * PAGE);
	CHECK_INT(part->hi - w->lo, end * PAGE);
	CHECK_INT(part->offset, first * PAGE);
}

TEST_IN_WORLD(all_or_a_part_of_a_segment)
{
	struct moved_text part;

	CHECK_INT(compare(w, 1, 4, &part), 0);
	check_part(w, &part, 1, 4);
	CHECK_INT(compare(w, 2, 3, &part), 0);
	check_part(w, &part, 2, 3);
	w->text.lo += 4 * PAGE; /* by what is mapped above it */
	w->text.offset = 4 * PAGE;
	CHECK_INT(compare(w, 1, 4, &part), 0);
	check_part(w, &part, 1, 4);
	CHECK_INT(compare(w, 4, 6, &part), 0);
	check_part(w, &part, 5, 6);
}

/* The kernel makes one mapping of memory beside memory. What is behind the segment's last byte, in
 * its last page, is not compared. */
TEST_IN_WORLD(memory_that_goes_further)
{
	struct moved_text part;

	memset(w->at + PAGE + CODE, 0, PAGE - 0x123);
	memset(w->at, 0xcc, PAGE);
	memset(w->at + 8 * PAGE, 0xcc, PAGE);
	CHECK_INT(compare(w, 0, 9, &part), 0);
	check_part(w, &part, 1, 4);
	CHECK_INT(compare(w, 4, 9, &part), 0);
	check_part(w, &part, 5, 6);
	CHECK_INT(compare(w, 6, 9, &part), -ENOENT);
}

TEST_IN_WORLD(other_bytes)
{
	struct moved_text part;

	w->at[3 * PAGE + 7] ^= 1;
	CHECK_INT(compare(w, 1, 4, &part), -EILSEQ);
	CHECK_INT(compare(w, 1, 3, &part), 0);
	CHECK_INT(compare(w, 1, 6, &part), 0); /* the other segment is the file's */
	check_part(w, &part, 5, 6);
	w->text.lo += PAGE; /* all of the file's bytes, at other places */
	CHECK_INT(compare(w, 5, 6, &part), -ENOENT);
	CHECK_INT(compare(w, 2, 5, &part), -EILSEQ);
}

TEST_IN_WORLD(memory_that_is_not_there)
{
	struct moved_text part;

	CHECK(!mprotect(w->at + 2 * PAGE, PAGE, PROT_NONE));
	CHECK_INT(compare(w, 1, 4, &part), -EFAULT);
	w->text.lo = UINT64_MAX - PAGE + 1;
	CHECK_INT(compare(w, 1, 4, &part), -ENOENT);
}

/* A file may have any headers: few of them are tried. */
TEST_IN_WORLD(segments_that_overlap)
{
	struct moved_text part;

	w->inspection.nsegments = 0;
	for (int i = 0; i < 39; i++)
		add(w, 1, CODE, PF_R | PF_X);
	w->text.offset = PAGE;
	w->text.lo += PAGE;
	memset(w->at + PAGE, 1, PAGE);
	CHECK_INT(compare(w, 1, 4, &part), -EILSEQ);
	w->segments[0].filesz = UINT64_MAX;
	CHECK_INT(compare(w, 1, 4, &part), -EILSEQ);
}

/* ---- whose code it may be ---- */

TEST(what_lies_beside_memory)
{
	struct procfs_mapping below = {.lo = 0x400000, .hi = 0x401000, .ino = 7, .name = "/data"},
			      above = {.lo = 0x500000, .hi = 0x501000, .ino = 8, .name = "/more"},
			      m = {.lo = 0x401000, .hi = 0x500000, .name = ""};
	struct process p = {0};
	struct files none = {0}; /* a file that is opened is counted as not readable */

	m.below = &below;
	m.above = &above;
	CHECK(!moved_text_of(&none, &p, &m).file);
	above.offset = 0x800000; /* too far into its file */
	CHECK(!moved_text_of(&none, &p, &m).file);
	below.lo = 0x600000;
	CHECK(!moved_text_of(&none, &p, &m).file);
	CHECK_INT(none.unreadable, 0);
}

TEST(what_was_mapped_in_its_place)
{
	struct files fs = {0};
	struct file file = {.source.readable = true}, refused = {.state = FILE_REFUSED};
	struct process_mapping had[] = {
		{.lo = 0x1000, .hi = 0x2000, .offset = 0x5000, .file = &refused},
		{.lo = 0x2000, .hi = 0x4000, .offset = 0x6000, .file = &file},
		{.lo = 0x4000, .hi = 0x5000},
	};
	struct process p = {.mappings = had, .n = 3};
	struct procfs_mapping m = {.lo = 0x1000, .hi = 0x3000, .name = "//anon"};
	struct process_text t = moved_text_of(&fs, &p, &m);

	CHECK(t.file == &file && t.lo == 0x2000 && t.offset == 0x6000);
	m.name = "/memfd:code (deleted)";
	CHECK(moved_text_of(&fs, &p, &m).file == &file);
	m.name = "/a/library (deleted)"; /* a file */
	CHECK(!moved_text_of(&fs, &p, &m).file);
	m = (struct procfs_mapping){.lo = 0x4000, .hi = 0x6000, .name = ""};
	CHECK(moved_text_of(&fs, &p, &m).file == &file);
	m.lo = 0x5000;
	CHECK(!moved_text_of(&fs, &p, &m).file);
	had[2].text = t; /* it differed when it was compared */
	had[2].text.tries = MOVED_TEXT_TRIES - 1;
	t = moved_text_of(&fs, &p,
			  &(struct procfs_mapping){.lo = 0x4000, .hi = 0x5000, .name = ""});
	CHECK(t.file == &file && !t.tries);
}
