// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/names core/symbols
/* A table of names: it says what the symbols say, and whatever is in it, nothing outside of it is
 * handed out. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/utf8.h"
#include "names/make.h"
#include "names/names.h"
#include "test.h"
#include "worker/internal/symbolize_reply.h"

static uint32_t quality(const struct symbols *s)
{
	(void)s;
	return 5;
}

/* Of this program; inlines: with lines. */
static void make(struct buf *b, bool inlines, struct symbols **s)
{
	struct symbols_files files = {open("/proc/self/exe", O_RDONLY | O_CLOEXEC), -1, -1};

	CHECK_INT(symbols_open(s, &files, inlines), 0);
	CHECK_INT(names_make(b, *s, quality), 0);
}

static int memory_with(const void *p, size_t len)
{
	int fd = memfd_create("names", MFD_CLOEXEC);

	CHECK(fd >= 0 && pwrite(fd, p, len, 0) == (ssize_t)len);
	return fd;
}

static uint64_t body_of(const struct names_head *h)
{
	return (sizeof(*h) + h->rows * sizeof(struct names_row) +
		h->frames * sizeof(struct names_frame) +
		h->functions * sizeof(struct names_function) + h->texts + 7) &
	       ~7ull;
}

/* Makes the checksum of byte `at` right again. */
static void sum(char *p, uint64_t body, uint64_t at)
{
	uint64_t page = at / NAMES_PAGE, from = page * NAMES_PAGE;
	uint64_t n = body - from < NAMES_PAGE ? body - from : NAMES_PAGE;
	uint64_t s = XXH3_64bits_withSeed(p + from, n, page);

	memcpy(p + body + page * 8, &s, sizeof(s));
}

struct expected {
	const struct symbols_frame *frames;
	uint32_t n, at;
	bool same;
};

static void each(void *arg, const struct symbols_frame *f)
{
	struct expected *e = arg;
	const struct symbols_frame *t = &e->frames[e->at++];

	if (e->at > e->n)
		return;
	e->same &= !strcmp(t->name, f->name) && !strcmp(t->system_name, f->system_name) &&
		   !strcmp(t->file, f->file) && t->line == f->line && t->column == f->column &&
		   t->start_line == f->start_line && t->flags == f->flags;
}

/* Every address of the code. */
static void compare(bool inlines)
{
	uint32_t compared = 0, missing = 0;
	struct symbols_span code;
	struct names_table *t;
	struct symbols *s;
	struct buf b = {0};

	make(&b, inlines, &s);
	CHECK_INT(names_open(&t, memory_with(b.p, b.len), 0, b.len), 0);
	CHECK_INT(names_quality(t), 5);
	for (uint32_t i = 0; symbols_code(s, i, &code); i++)
		for (uint64_t at = code.lo; at < code.hi; at++, compared++) {
			struct expected e = {.same = true};
			int r = names_find(t, at, &e.frames, &e.n);

			CHECK(!r || r == -ENOENT);
			missing += !!r;
			if (r)
				continue;
			CHECK_INT(symbols_lookup(s, at, each, &e), 0);
			CHECK(e.same && e.at == e.n);
		}
	CHECK(compared > 20000 && missing < compared / 1000);
	printf("# %u addresses, %u not in the table of %zu bytes\n", compared, missing, b.len);
	names_close(t);
	symbols_close(s);
	buf_fini(&b);
}

TEST(it_says_what_the_symbols_say)
{
	compare(false);
	compare(true);
}

/* Looks some addresses up. How many there are; *damaged: how many look-ups found damage. */
static uint32_t look_around(const struct buf *b, uint64_t lo, uint64_t hi, uint32_t *damaged)
{
	const struct symbols_frame *f;
	struct names_table *t;
	uint32_t n, found = 0;

	*damaged = 0;
	if (names_open(&t, memory_with(b->p, b->len), 0, b->len)) {
		*damaged = 1;
		return 0;
	}
	for (uint64_t at = lo; at < hi; at += (hi - lo) / 40 + 1) {
		int r = names_find(t, at, &f, &n);

		CHECK(!r || r == -ENOENT || r == -EBADMSG);
		*damaged += r == -EBADMSG;
		for (uint32_t i = 0; !r && i < n; i++, found++)
			CHECK(utf8_printable(f[i].name, strlen(f[i].name)) &&
			      utf8_printable(f[i].system_name, strlen(f[i].system_name)) &&
			      utf8_printable(f[i].file, strlen(f[i].file)) && f[i].flags <= 3);
	}
	names_close(t);
	return found;
}

static const uint32_t values[] = {
	0, 1, 2, 0x7f, 0x80808080, 0x1b1b1b1b, INT32_MAX, UINT32_MAX - 1, UINT32_MAX};

/* With checksums that are right: a worker was taken over. Without: a disk is damaged. */
TEST(bent_tables)
{
	uint32_t found = 0, lies = 0, damaged, seed = 1;
	struct symbols_span code;
	struct symbols *s;
	struct buf b = {0};
	uint64_t body;
	int fd;

	make(&b, false, &s);
	CHECK(symbols_code(s, 3, &code));
	body = body_of((void *)b.p);
	fd = memory_with(b.p, b.len);
	for (uint32_t i = 0; i < 3000; i++) {
		uint64_t at = (seed = seed * 1103515245u + 12345u) % (i % 4 ? body - 4 : 64);

		at &= ~3ull;
		memcpy(b.p + at, &values[i % 9], 4);
		if (i & 1) {
			sum(b.p, body, at);
			found += look_around(&b, code.lo, code.hi, &damaged);
			lies += damaged;
		} else {
			look_around(&b, code.lo, code.hi, &damaged);
		}
		CHECK(pread(fd, b.p, b.len, 0) == (ssize_t)b.len);
	}
	printf("# %u frames, %u lies were noticed\n", found, lies);
	CHECK(found > 10000 && lies > 20);
	close(fd);
	symbols_close(s);
	buf_fini(&b);
}

/* Each byte of a page of rows: no answer is another than before. */
TEST(damage_is_noticed)
{
	const struct symbols_frame *f;
	struct symbols_span code;
	struct names_table *t;
	struct symbols *s;
	struct buf b = {0};
	uint32_t n, same = 0, noticed = 0;

	make(&b, false, &s);
	CHECK(symbols_code(s, 3, &code));
	for (uint64_t at = sizeof(struct names_head); at < body_of((void *)b.p); at += 997) {
		struct expected e = {.same = true};
		uint64_t addr = code.lo + at % (code.hi - code.lo);
		int r;

		b.p[at] ^= 0x10;
		CHECK_INT(names_open(&t, memory_with(b.p, b.len), 0, b.len),
			  at < NAMES_PAGE ? -EBADMSG : 0);
		b.p[at] ^= 0x10;
		if (at < NAMES_PAGE)
			continue;
		r = names_find(t, addr, &f, &n);
		CHECK(!r || r == -EBADMSG);
		e.frames = f;
		e.n = n;
		if (!r)
			CHECK(!symbols_lookup(s, addr, each, &e) && e.same && e.at == e.n);
		same += !r;
		noticed += !!r;
		names_close(t);
	}
	CHECK(same && noticed);
	symbols_close(s);
	buf_fini(&b);
}

/* Three functions, with code of none behind the first. */
__asm__(".pushsection .text\n .type first, @function\n"
	"first: ret\n .size first, 1\n .skip 32, 0xcc\n"
	".globl behind_none\n .type behind_none, @function\n"
	"behind_none: nop\n ret\n .size behind_none, 2\n"
	".globl right_behind\n .type right_behind, @function\n"
	"right_behind: ret\n .size right_behind, 1\n .popsection");
void behind_none(void);
void right_behind(void);

/* The table's, which is the worker's, too. */
static const char *name_of_frame(struct names_table *t, struct symbols *s, uint64_t at)
{
	const struct symbols_frame *f;
	struct worker_symbols answer;
	struct buf b = {0};
	uint32_t n;
	int err = names_find(t, at, &f, &n);

	CHECK_INT(symbolize_reply_write(&b, s, &at, 1), 0);
	CHECK_INT(symbolize_reply_open(&answer, b.p, b.len, 1), 0);
	if (!err)
		CHECK_STR(answer.frames->name, f->name);
	free((void *)answer.frames);
	buf_fini(&b);
	return err ? "-" : f->name;
}

TEST(where_a_function_begins)
{
	struct names_table *t;
	struct symbols *s;
	struct buf b = {0};
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	const uint64_t at = (uintptr_t)behind_none - (uintptr_t)__ehdr_start,
		       next = (uintptr_t)right_behind - (uintptr_t)__ehdr_start;

	make(&b, true, &s);
	CHECK_INT(names_open(&t, memory_with(b.p, b.len), 0, b.len), 0);
	CHECK_STR(name_of_frame(t, s, at), "behind_none");
	CHECK_STR(name_of_frame(t, s, at - 1), "behind_none"); /* it returns to its beginning */
	CHECK_STR(name_of_frame(t, s, at + 1), "behind_none"); /* a function ends before the next */
	CHECK_STR(name_of_frame(t, s, next), "right_behind");
	CHECK_STR(name_of_frame(t, s, at - 33), "first");
	CHECK_INT(*name_of_frame(t, s, at - 2), '+');
	CHECK_INT(*name_of_frame(t, s, UINT64_MAX), '-');
	names_close(t);
	symbols_close(s);
	buf_fini(&b);
}

/* No SIGBUS, and no answer. */
TEST(truncated_while_it_is_open)
{
	const struct symbols_frame *f;
	struct symbols_span code;
	struct names_table *t;
	struct symbols *s;
	struct buf b = {0};
	uint32_t n;
	int fd;

	make(&b, true, &s);
	CHECK(symbols_code(s, 3, &code));
	fd = memory_with(b.p, b.len);
	CHECK_INT(names_open(&t, dup(fd), 0, b.len), 0);
	CHECK_INT(names_find(t, code.lo, &f, &n), 0);
	CHECK(!ftruncate(fd, 2 * NAMES_PAGE));
	CHECK_INT(names_find(t, (code.lo + code.hi) / 2, &f, &n), -EBADMSG);
	names_close(t);
	CHECK_INT(names_open(&t, dup(fd), 0, b.len), -EBADMSG);
	CHECK(!ftruncate(fd, 0));
	CHECK_INT(names_open(&t, fd, 0, b.len), -EBADMSG);
	symbols_close(s);
	buf_fini(&b);
}
