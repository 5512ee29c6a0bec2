// SPDX-License-Identifier: Apache-2.0
/* Looks addresses up in a table, a page at a time. */
#include "names/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/pread.h"
#include "base/utf8.h"

#define KEPT_PAGES 32u /* a power of two: those that a search meets again */

struct page {
	uint64_t number; /* + 1; 0: none */
	char bytes[NAMES_PAGE];
};

struct names_table {
	int fd;
	uint64_t at, body; /* body: bytes without checksums */
	struct names_head head;
	uint64_t frames_at, functions_at, texts_at; /* from the table's start */
	struct buf frames,
		texts; /* of the last address; texts: positions until they are complete */
	struct page pages[KEPT_PAGES];
};

/* ---- pages ---- */

/* 0 or -errno; -EBADMSG: the page is not what was written. */
static int page_of(struct names_table *t, uint64_t number, const char **bytes)
{
	struct page *p = &t->pages[number & (KEPT_PAGES - 1)];
	uint64_t at = number * NAMES_PAGE, sum;
	uint64_t n = t->body - at < NAMES_PAGE ? t->body - at : NAMES_PAGE;
	int err;

	*bytes = p->bytes;
	if (p->number == number + 1)
		return 0;
	p->number = 0;
	err = pread_all(t->fd, p->bytes, n, t->at + at);
	if (!err)
		err = pread_all(t->fd, &sum, sizeof(sum), t->at + t->body + number * sizeof(sum));
	if (!err && XXH3_64bits_withSeed(p->bytes, n, number) != sum)
		err = -EBADMSG;
	if (!err)
		p->number = number + 1;
	return err;
}

/* len bytes of the body at `from`, which are inside of it. */
static int get(struct names_table *t, uint64_t from, void *to, size_t len)
{
	while (len) {
		uint64_t in = from % NAMES_PAGE;
		size_t n = len < NAMES_PAGE - in ? len : NAMES_PAGE - in;
		const char *bytes;
		int err = page_of(t, from / NAMES_PAGE, &bytes);

		if (err)
			return err;
		memcpy(to, bytes + in, n);
		to = (char *)to + n;
		from += n;
		len -= n;
	}
	return 0;
}

/* ---- the table ---- */

static bool has_valid_sizes(struct names_table *t, uint64_t bytes)
{
	const struct names_head *h = &t->head;

	if (h->magic != NAMES_MAGIC || h->version != NAMES_VERSION || h->bytes != bytes ||
	    h->texts > NAMES_MAX_BYTES)
		return false;
	t->frames_at = sizeof(*h) + h->rows * sizeof(struct names_row);
	t->functions_at = t->frames_at + h->frames * sizeof(struct names_frame);
	t->texts_at = t->functions_at + h->functions * sizeof(struct names_function);
	t->body = (t->texts_at + h->texts + 7) & ~7ull;
	return t->body + (t->body + NAMES_PAGE - 1) / NAMES_PAGE * 8 == bytes;
}

int names_open(struct names_table **ret, int fd, uint64_t at, uint64_t bytes)
{
	struct names_table *t = calloc(1, sizeof(*t));
	struct names_head again;
	int err = t ? 0 : -ENOMEM;

	if (!err && (bytes < sizeof(t->head) || bytes > NAMES_MAX_BYTES))
		err = -EBADMSG;
	if (!err)
		err = pread_all(fd, &t->head, sizeof(t->head), at);
	if (err) {
		free(t);
		close(fd);
		return err;
	}
	t->fd = fd;
	t->at = at;
	err = has_valid_sizes(t, bytes) ? 0 : -EBADMSG;
	if (!err) /* its page has a checksum */
		err = get(t, 0, &again, sizeof(again));
	if (!err && memcmp(&again, &t->head, sizeof(again)))
		err = -EBADMSG;
	if (err)
		names_close(t);
	else
		*ret = t;
	return err;
}

void names_close(struct names_table *t)
{
	if (!t)
		return;
	close(t->fd);
	buf_fini(&t->frames);
	buf_fini(&t->texts);
	free(t);
}

uint32_t names_quality(const struct names_table *t)
{
	return t->head.quality;
}

/* ---- an address ---- */

static int find_row(struct names_table *t, uint64_t vaddr, struct names_row *row)
{
	uint32_t lo = 0, hi = t->head.rows;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		int err = get(t, sizeof(t->head) + mid * sizeof(*row), row, sizeof(*row));

		if (err)
			return err;
		if (row->lo <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? get(t, sizeof(t->head) + (lo - 1) * sizeof(*row), row, sizeof(*row)) : -ENOENT;
}

/* Appends the text; *pos: where. */
static int add_text(struct names_table *t, uint64_t at, uint64_t *pos)
{
	uint64_t end = t->texts_at + t->head.texts;

	*pos = t->texts.len;
	for (at += t->texts_at; at < end && t->texts.len < NAMES_MAX_TEXTS;) {
		uint64_t in = at % NAMES_PAGE, n = NAMES_PAGE - in;
		const char *bytes, *nul;
		int err = page_of(t, at / NAMES_PAGE, &bytes);

		if (err)
			return err;
		n = n < end - at ? n : end - at;
		nul = memchr(bytes + in, 0, n);
		if (buf_add(&t->texts, bytes + in, nul ? (size_t)(nul - bytes - in) + 1 : n))
			return -ENOMEM;
		if (nul)
			return utf8_printable(t->texts.p + *pos, t->texts.len - 1 - *pos)
				       ? 0
				       : -EBADMSG;
		at += n;
	}
	return -EBADMSG;
}

/* Its texts are positions. */
static int add_frame(struct names_table *t, const struct names_frame *f)
{
	struct names_function g;
	struct symbols_frame out = {.line = f->line, .column = f->column};
	uint64_t at[3] = {0};
	int err;

	if (f->function - 1 >= t->head.functions) /* dict ids: from 1 */
		return -EBADMSG;
	err = get(t, t->functions_at + (uint64_t)(f->function - 1) * sizeof(g), &g, sizeof(g));
	if (!err)
		err = add_text(t, g.name, &at[0]);
	if (!err)
		err = add_text(t, g.system_name, &at[1]);
	if (!err)
		err = add_text(t, g.file, &at[2]);
	if (err)
		return err;
	out.name = (const char *)at[0];
	out.system_name = (const char *)at[1];
	out.file = (const char *)at[2];
	out.start_line = g.start_line;
	out.flags = g.flags & (SYMBOLS_STUB | SYMBOLS_INLINED);
	return buf_add(&t->frames, &out, sizeof(out));
}

static int add_stub(struct names_table *t, uint64_t lo)
{
	struct symbols_frame out = {.flags = SYMBOLS_STUB};

	if (buf_printf(&t->texts, "+0x%llx", (unsigned long long)lo))
		return -ENOMEM;
	out.file = (const char *)t->texts.len; /* "" */
	return buf_add(&t->texts, "", 1) || buf_add(&t->frames, &out, sizeof(out)) ? -ENOMEM : 0;
}

/* Replaces positions of texts by texts. */
static void point_at_texts(struct names_table *t)
{
	struct symbols_frame *f = (void *)t->frames.p;

	for (size_t i = 0; i < t->frames.len / sizeof(*f); i++) {
		f[i].name = t->texts.p + (uintptr_t)f[i].name;
		f[i].system_name = t->texts.p + (uintptr_t)f[i].system_name;
		f[i].file = t->texts.p + (uintptr_t)f[i].file;
	}
}

static int add_frames(struct names_table *t, const struct names_row *row)
{
	struct names_frame f;
	int err = 0;

	if (row->n > NAMES_MAX_FRAMES || row->first > t->head.frames ||
	    row->n > t->head.frames - row->first)
		return -EBADMSG;
	for (uint32_t i = 0; !err && i < row->n; i++) {
		err = get(t, t->frames_at + ((uint64_t)row->first + i) * sizeof(f), &f, sizeof(f));
		if (!err)
			err = add_frame(t, &f);
	}
	return err;
}

int names_find(struct names_table *t, uint64_t vaddr, const struct symbols_frame **frames,
	       uint32_t *n)
{
	struct names_row row;
	int err = find_row(t, vaddr, &row);

	buf_reset(&t->frames);
	buf_reset(&t->texts);
	if (!err && !row.n)
		err = -ENOENT;
	if (!err)
		err = row.first == NAMES_STUB && row.n == 1 ? add_stub(t, row.lo)
							    : add_frames(t, &row);
	if (err)
		return err;
	point_at_texts(t);
	*frames = (const void *)t->frames.p;
	*n = row.n;
	return 0;
}
