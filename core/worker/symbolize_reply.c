// SPDX-License-Identifier: Apache-2.0
/* The agent's side of a symbolization's block: each position, count and text is checked. */
#include "worker/internal/symbolize_reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* The parts of a block. */
struct parts {
	const struct symbolize_reply *head;
	const struct worker_span *spans;
	const uint32_t *first;
	const struct symbolize_reply_frame *frames;
	const char *texts;
};

/* Texts must be printable, as they may reach a terminal. */
static bool texts_ok(const struct parts *b)
{
	const char *p = b->texts, *end = p + b->head->texts;

	if (p < end && end[-1])
		return false;
	for (size_t n; p < end; p += n + 1) {
		n = strlen(p);
		if (!utf8_printable(p, n))
			return false;
	}
	return true;
}

/* Whether a text begins there: a position inside a text can be inside a character. */
static bool is_text(const struct parts *b, uint32_t at)
{
	return at < b->head->texts && (!at || !b->texts[at - 1]);
}

static bool first_ok(const struct parts *b)
{
	uint32_t n = b->head->n;

	for (uint32_t i = 0; i < n; i++)
		if (b->first[i] > b->first[i + 1])
			return false;
	return !b->first[0] && b->first[n] <= b->head->nframes;
}

static bool spans_ok(const struct parts *b)
{
	uint32_t nframes = b->head->nframes;
	uint64_t end = 0;

	for (uint32_t i = 0; i < b->head->nspans; i++) {
		const struct worker_span *s = &b->spans[i];

		if (s->lo < end || s->hi <= s->lo || !s->n || s->first > nframes ||
		    s->n > nframes - s->first)
			return false;
		end = s->hi;
	}
	return true;
}

static bool frames_ok(const struct parts *b)
{
	for (uint32_t i = 0; i < b->head->nframes; i++) {
		const struct symbolize_reply_frame *f = &b->frames[i];

		if (!is_text(b, f->name) || !is_text(b, f->system_name) || !is_text(b, f->file))
			return false;
	}
	return true;
}

static bool alt_ok(const struct parts *b)
{
	const struct symbolize_reply *head = b->head;

	return !head->alt_id_len ||
	       (head->alt_id_len <= sizeof(head->alt_id) && is_text(b, head->alt_name));
}

/* Takes n things of `size` bytes off the rest of a block. */
static bool take(uint64_t *rest, uint64_t n, uint64_t size)
{
	if (*rest / size < n)
		return false;
	*rest -= n * size;
	return true;
}

static bool find_parts(struct parts *b, const void *block, uint64_t len, uint32_t n)
{
	const struct symbolize_reply *head = block;
	uint64_t rest = len;

	if (!take(&rest, 1, sizeof(*head)) || head->magic != SYMBOLIZE_REPLY_MAGIC ||
	    head->n != n || !take(&rest, head->nspans, sizeof(*b->spans)) ||
	    !take(&rest, (uint64_t)n + 1, sizeof(*b->first)) ||
	    !take(&rest, head->nframes, sizeof(*b->frames)) || rest != head->texts)
		return false;
	b->head = head;
	b->spans = (const void *)(head + 1);
	b->first = (const void *)(b->spans + head->nspans);
	b->frames = (const void *)(b->first + n + 1);
	b->texts = (const void *)(b->frames + head->nframes);
	return true;
}

int symbolize_reply_open(struct worker_symbols *ret, const void *block, uint64_t len, uint32_t n)
{
	struct symbols_frame *frames;
	struct parts b;

	if (!find_parts(&b, block, len, n) || !first_ok(&b) || !spans_ok(&b) || !texts_ok(&b) ||
	    !frames_ok(&b) || !alt_ok(&b))
		return -EBADMSG;
	frames = calloc(b.head->nframes ? b.head->nframes : 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < b.head->nframes; i++) {
		const struct symbolize_reply_frame *f = &b.frames[i];

		frames[i] = (struct symbols_frame){
			.name = b.texts + f->name,
			.system_name = b.texts + f->system_name,
			.file = b.texts + f->file,
			.line = f->line,
			.column = f->column,
			.start_line = f->start_line,
			.flags = f->flags & SYMBOLIZE_REPLY_FLAGS,
		};
	}
	*ret = (struct worker_symbols){
		.n = n,
		.first = b.first,
		.frames = frames,
		.nspans = b.head->nspans,
		.spans = b.spans,
		.quality = b.head->quality & INSPECTION_SOURCES,
		.alt_name = b.head->alt_id_len ? b.texts + b.head->alt_name : NULL,
		.alt_build_id = b.head->alt_id,
		.alt_build_id_len = b.head->alt_id_len,
	};
	return 0;
}
