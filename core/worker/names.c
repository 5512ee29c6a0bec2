// SPDX-License-Identifier: Apache-2.0
/* The agent's side: a block of names, believed only as far as it was checked. */
#include "worker/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* What goes to terminals, files and pages later. A NUL ends each text. */
static bool texts_ok(const char *p, uint64_t len)
{
	const char *end = p + len;

	if (!len || end[-1])
		return false;
	for (size_t n; p < end; p += n + 1) {
		n = strlen(p);
		if (!utf8_printable(p, n))
			return false;
	}
	return true;
}

/* In the middle of a text may be in the middle of a character. */
static bool is_start(const char *texts, uint64_t len, uint32_t at)
{
	return at < len && (!at || !texts[at - 1]);
}

static bool first_ok(const uint32_t *first, uint32_t n, uint32_t nframes)
{
	for (uint32_t i = 0; i < n; i++)
		if (first[i] > first[i + 1])
			return false;
	return !first[0] && first[n] <= nframes;
}

static bool spans_ok(const struct names_block *b, const struct worker_span *s)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < b->nspans; i++) {
		if (s[i].lo < end || s[i].hi <= s[i].lo || !s[i].n || s[i].first > b->nframes ||
		    s[i].n > b->nframes - s[i].first)
			return false;
		end = s[i].hi;
	}
	return true;
}

static bool alt_ok(const struct names_block *b, const char *texts)
{
	return !b->alt_id_len ||
	       (b->alt_id_len <= sizeof(b->alt_id) && is_start(texts, b->texts, b->alt_name));
}

int names_open(struct worker_symbols *ret, const void *block, uint64_t len, uint32_t n)
{
	const struct names_block *b = block;
	const struct names_frame *frames;
	const struct worker_span *spans;
	struct worker_frame *out;
	const uint32_t *first;
	const char *texts;
	uint64_t left;

	if (len < sizeof(*b) || b->magic != NAMES_MAGIC || b->n != n)
		return -EBADMSG;
	left = len - sizeof(*b);
	if (left / sizeof(*spans) < b->nspans)
		return -EBADMSG;
	left -= b->nspans * sizeof(*spans);
	if (left / 4 < (uint64_t)n + 1)
		return -EBADMSG;
	left -= 4 * ((uint64_t)n + 1);
	if (left / sizeof(*frames) < b->nframes || left - b->nframes * sizeof(*frames) != b->texts)
		return -EBADMSG;
	spans = (const void *)(b + 1);
	first = (const void *)(spans + b->nspans);
	frames = (const void *)(first + n + 1);
	texts = (const void *)(frames + b->nframes);
	if (!first_ok(first, n, b->nframes) || !spans_ok(b, spans) || !texts_ok(texts, b->texts) ||
	    !alt_ok(b, texts))
		return -EBADMSG;
	out = calloc(b->nframes ? b->nframes : 1, sizeof(*out));
	if (!out)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->nframes; i++) {
		const struct names_frame *f = &frames[i];

		if (!is_start(texts, b->texts, f->name) ||
		    !is_start(texts, b->texts, f->system_name) ||
		    !is_start(texts, b->texts, f->file)) {
			free(out);
			return -EBADMSG;
		}
		out[i] = (struct worker_frame){
			.name = texts + f->name,
			.system_name = texts + f->system_name,
			.file = texts + f->file,
			.line = f->line,
			.column = f->column,
			.start_line = f->start_line,
			.flags = f->flags & NAMES_KNOWN_FLAGS,
		};
	}
	*ret = (struct worker_symbols){
		.n = n,
		.first = first,
		.frames = out,
		.nspans = b->nspans,
		.spans = spans,
		.quality = b->quality,
		.alt_name = b->alt_id_len ? texts + b->alt_name : NULL,
		.alt_build_id = b->alt_id,
		.alt_build_id_len = b->alt_id_len,
	};
	return 0;
}
