// SPDX-License-Identifier: Apache-2.0
/* The worker's side of a symbolization: source frames of addresses as one block, each text once.
 * The block also has spans around the requested addresses, as later requests are likely to be for
 * addresses of the same functions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/dict.h"
#include "base/utf8.h"
#include "worker/internal/symbolize_reply.h"

#define AROUND 8192u /* bytes of a function on each side of an address that are covered too */
#define FUNCTION_SPANS 2048u
#define AROUND_SYMBOLS (128u << 10) /* bytes, where there are no lines */
#define MAX_SPANS 16384u            /* of one request */

struct writer {
	struct dict texts;
	struct buf
		frames; /* struct symbolize_reply_frame, with ids of texts in place of positions */
	struct buf *to; /* where add_frame() appends: frames or span_frames */
	int err;
	struct buf spans, span_frames; /* struct worker_span, sorted */
	bool has_lines;
	uint64_t done; /* spans cover the addresses below this */
};

static uint32_t text_id(struct writer *w, const char *text)
{
	uint32_t id = dict_str(&w->texts, text ? text : "");

	if (id == DICT_NONE)
		w->err = -ENOMEM;
	return id;
}

static void add_frame(void *arg, const struct symbols_frame *f)
{
	struct writer *w = arg;
	struct symbolize_reply_frame frame = {
		.name = text_id(w, f->name),
		.system_name = text_id(w, f->system_name),
		.file = text_id(w, f->file),
		.line = f->line,
		.column = f->column,
		.start_line = f->start_line,
		.flags = f->flags & SYMBOLIZE_REPLY_FLAGS,
	};

	buf_add(w->to, &frame, sizeof(frame));
}

uint32_t symbolize_reply_quality(const struct symbols *s)
{
	struct symbols_quality q;

	symbols_quality(s, &q);
	return (q.symtab ? INSPECTION_SYMTAB : 0) | (q.dynsym ? INSPECTION_DYNSYM : 0) |
	       (q.debugdata ? INSPECTION_DEBUGDATA : 0) | (q.dwarf ? INSPECTION_DWARF : 0) |
	       (q.gopclntab ? INSPECTION_GO : 0);
}

/* The dwz file that the agent has to find. Its name is a text id until place_texts(). */
static void add_missing_alt(struct writer *w, const struct symbols *s, struct symbolize_reply *head)
{
	const uint8_t *id;
	uint32_t n;
	const char *name = symbols_missing_alt(s, &id, &n);

	if (!name || !n || n > sizeof(head->alt_id))
		return;
	head->alt_name = text_id(w, name);
	head->alt_id_len = n;
	memcpy(head->alt_id, id, n);
}

/* Lays the texts out; replaces text ids by positions. */
static int place_texts(struct writer *w, struct buf *texts, struct symbolize_reply *head)
{
	struct symbolize_reply_frame *f = (void *)w->frames.p;
	size_t n = w->frames.len / sizeof(*f);
	uint32_t *at = malloc(w->texts.n * sizeof(*at));
	int err = -ENOMEM;

	if (!at)
		return err;
	for (uint32_t i = 0; i < w->texts.n; i++) {
		at[i] = (uint32_t)texts->len;
		utf8_clean_printable(texts, w->texts.entries[i].key, w->texts.entries[i].len);
		buf_add(texts, "", 1);
	}
	err = texts->len > UINT32_MAX ? -EFBIG : texts->error;
	for (size_t i = 0; i < n && !err; i++) {
		f[i].name = at[f[i].name];
		f[i].system_name = at[f[i].system_name];
		f[i].file = at[f[i].file];
	}
	if (!err && head->alt_id_len)
		head->alt_name = at[head->alt_name];
	free(at);
	return err;
}

/* ---- spans ---- */

static uint32_t count(const struct buf *b, size_t size)
{
	return (uint32_t)(b->len / size);
}

/* Extends the last span if the new one follows it and has the same frames. */
static bool merge_span(struct writer *w, const struct worker_span *s)
{
	const struct symbolize_reply_frame *f = (const void *)w->span_frames.p;
	struct worker_span *last;

	if (!w->spans.len)
		return false;
	last = (struct worker_span *)(void *)(w->spans.p + w->spans.len) - 1;
	if (last->hi != s->lo || last->n != s->n ||
	    memcmp(f + last->first, f + s->first, s->n * sizeof(*f)))
		return false;
	last->hi = s->hi;
	w->span_frames.len = s->first * sizeof(*f);
	return true;
}

/* Adds the span of addresses from addr on, at most up to end, that have addr's frames. *next: its
 * end. */
static int add_span(struct writer *w, struct symbols *s, uint64_t addr, uint64_t end,
		    uint64_t *next)
{
	struct worker_span span = {
		.lo = addr, .first = count(&w->span_frames, sizeof(struct symbolize_reply_frame))};
	struct symbols_span valid;
	int r = symbols_lookup_span(s, addr, add_frame, w, &valid);

	if (!r)
		r = w->err ? w->err : w->span_frames.error;
	if (r)
		return r;
	*next = span.hi = valid.hi < end ? valid.hi : end;
	span.n = count(&w->span_frames, sizeof(struct symbolize_reply_frame)) - span.first;
	return merge_span(w, &span) ? 0 : buf_add(&w->spans, &span, sizeof(span));
}

/* Adds spans of the function at addr, up to AROUND bytes away. Addresses below w->done have spans
 * already, or are skipped because the requested addresses do not ascend. */
static int add_function(struct writer *w, struct symbols *s, uint64_t addr)
{
	uint32_t before = count(&w->spans, sizeof(struct worker_span));
	uint32_t most = MAX_SPANS - before < FUNCTION_SPANS ? MAX_SPANS - before : FUNCTION_SPANS;
	struct symbols_span f;
	uint64_t at;
	int r = 0;

	if (addr < w->done || !most || !symbols_function(s, addr, &f))
		return 0;
	if (addr - f.lo > AROUND)
		f.lo = addr - AROUND;
	if (f.hi - addr > AROUND)
		f.hi = addr + AROUND;
	for (at = f.lo > w->done ? f.lo : w->done;
	     !r && at < f.hi && count(&w->spans, sizeof(struct worker_span)) - before < most;)
		r = add_span(w, s, at, f.hi, &at);
	w->done = at;
	return r;
}

/* Adds spans of the symbols around addr: without lines a span is a complete function. */
static int add_symbols(struct writer *w, struct symbols *s, uint64_t addr)
{
	uint64_t at = addr > AROUND_SYMBOLS ? addr - AROUND_SYMBOLS : 0;
	struct symbols_span f;
	int r = 0;

	if (addr < w->done)
		return 0;
	at = at > w->done ? at : w->done;
	while (!r && count(&w->spans, sizeof(struct worker_span)) < MAX_SPANS &&
	       symbols_next(s, at, &f) && (f.lo <= addr || f.lo - addr < AROUND_SYMBOLS))
		r = add_span(w, s, f.lo, f.hi, &at);
	w->done = at;
	return r;
}

static int add_around(struct writer *w, struct symbols *s, uint64_t addr)
{
	int r;

	w->to = &w->span_frames;
	r = w->has_lines ? add_function(w, s, addr) : add_symbols(w, s, addr);
	w->to = &w->frames;
	return r;
}

/* Without memory the answer has no spans: later requests ask for these addresses. */
static void drop_spans(struct writer *w)
{
	buf_fini(&w->spans);
	buf_fini(&w->span_frames);
	w->err = 0;
	w->done = UINT64_MAX;
}

static int append_spans(struct writer *w)
{
	struct worker_span *s = (void *)w->spans.p;
	uint32_t base = count(&w->frames, sizeof(struct symbolize_reply_frame));

	for (uint32_t i = 0; i < count(&w->spans, sizeof(*s)); i++)
		s[i].first += base;
	return buf_add(&w->frames, w->span_frames.p, w->span_frames.len);
}

/* ---- the block ---- */

static int look_up(struct writer *w, struct symbols *s, const uint64_t *addresses, uint32_t n,
		   uint32_t *first)
{
	int err;

	w->to = &w->frames;
	w->has_lines = symbolize_reply_quality(s) & (INSPECTION_DWARF | INSPECTION_GO);
	for (uint32_t i = 0; i < n; i++) {
		first[i] = count(&w->frames, sizeof(struct symbolize_reply_frame));
		err = symbols_lookup(s, addresses[i], add_frame, w);
		if (!err)
			err = w->err ? w->err : w->frames.error;
		if (err)
			return err;
		if (add_around(w, s, addresses[i]))
			drop_spans(w);
	}
	first[n] = count(&w->frames, sizeof(struct symbolize_reply_frame));
	return append_spans(w);
}

int symbolize_reply_write(struct buf *b, struct symbols *s, const uint64_t *addresses, uint32_t n)
{
	uint32_t *first = malloc(((size_t)n + 1) * sizeof(*first));
	struct symbolize_reply head = {.magic = SYMBOLIZE_REPLY_MAGIC, .n = n};
	struct buf texts = {0};
	struct writer w = {0};
	int err = -ENOMEM;

	if (!first || dict_init(&w.texts))
		goto out;
	err = look_up(&w, s, addresses, n, first);
	add_missing_alt(&w, s, &head);
	if (!err)
		err = w.err ? w.err : place_texts(&w, &texts, &head);
	if (err)
		goto out;
	head.nframes = count(&w.frames, sizeof(struct symbolize_reply_frame));
	head.nspans = count(&w.spans, sizeof(struct worker_span));
	head.quality = symbolize_reply_quality(s);
	head.texts = texts.len;
	buf_add(b, &head, sizeof(head));
	buf_add(b, w.spans.p, w.spans.len);
	buf_add(b, first, ((size_t)n + 1) * sizeof(*first));
	buf_add(b, w.frames.p, w.frames.len);
	buf_add(b, texts.p, texts.len);
	err = b->error;
out:
	free(first);
	dict_fini(&w.texts);
	buf_fini(&w.frames);
	buf_fini(&w.spans);
	buf_fini(&w.span_frames);
	buf_fini(&texts);
	return err;
}
