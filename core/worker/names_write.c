// SPDX-License-Identifier: Apache-2.0
/* The worker's side: source frames of addresses as one block, each text once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/dict.h"
#include "base/utf8.h"
#include "worker/names.h"

#define AROUND 8192u /* bytes of a function on each side of an address that are named with it */
#define FUNCTION_SPANS 2048u
#define AROUND_SYMBOLS (128u << 10)
#define MAX_SPANS 16384u /* of one request */

struct writer {
	struct dict texts;
	struct buf frames; /* struct names_frame, with ids of texts in place of positions */
	struct buf *to;    /* where frames go: these, or those of spans */
	int err;
	struct buf spans, span_frames; /* struct worker_span, sorted */
	bool has_lines;
	uint64_t done; /* up to where functions are named */
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
	struct names_frame frame = {
		.name = text_id(w, f->name),
		.system_name = text_id(w, f->system_name),
		.file = text_id(w, f->file),
		.line = f->line,
		.column = f->column,
		.start_line = f->start_line,
		.flags = f->flags & NAMES_KNOWN_FLAGS,
	};

	buf_add(w->to, &frame, sizeof(frame));
}

static uint32_t quality_of(const struct symbols *s)
{
	struct symbols_quality q;

	symbols_quality(s, &q);
	return (q.symtab ? INSPECTION_SYMTAB : 0) | (q.dynsym ? INSPECTION_DYNSYM : 0) |
	       (q.debugdata ? INSPECTION_DEBUGDATA : 0) | (q.dwarf ? INSPECTION_DWARF : 0) |
	       (q.gopclntab ? INSPECTION_GO : 0);
}

/* What the agent is to look for. Its name is an id like those of frames. */
static void add_missing_alt(struct writer *w, const struct symbols *s, struct names_block *head)
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

/* Texts one after the other; ids in frames become positions. */
static int place_texts(struct writer *w, struct buf *texts, struct names_block *head)
{
	struct names_frame *f = (void *)w->frames.p;
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

/* ---- the functions around ---- */

static uint32_t count(const struct buf *b, size_t size)
{
	return (uint32_t)(b->len / size);
}

/* Takes what follows the last span for its continuation where it has the same frames. */
static bool extends(struct writer *w, const struct worker_span *s)
{
	const struct names_frame *f = (const void *)w->span_frames.p;
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

/* What holds at addr, and how far, but not beyond end. *next: how far. */
static int add_span(struct writer *w, struct symbols *s, uint64_t addr, uint64_t end,
		    uint64_t *next)
{
	struct worker_span span = {.lo = addr,
				   .first = count(&w->span_frames, sizeof(struct names_frame))};
	struct symbols_span valid;
	int r = symbols_lookup_span(s, addr, add_frame, w, &valid);

	if (!r)
		r = w->err ? w->err : w->span_frames.error;
	if (r)
		return r;
	*next = span.hi = valid.hi < end ? valid.hi : end;
	span.n = count(&w->span_frames, sizeof(struct names_frame)) - span.first;
	return extends(w, &span) ? 0 : buf_add(&w->spans, &span, sizeof(span));
}

/* The function around an address, as far as it is not too long: the next windows will ask for other
 * addresses of it. Addresses that do not ascend are passed over. */
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

/* Where there are symbols and no lines, those around it: an answer is one function long. */
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

/* They go without saying: where there is no memory for them, they are asked for another time. */
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
	uint32_t base = count(&w->frames, sizeof(struct names_frame));

	for (uint32_t i = 0; i < count(&w->spans, sizeof(*s)); i++)
		s[i].first += base;
	return buf_add(&w->frames, w->span_frames.p, w->span_frames.len);
}

/* ---- all of it ---- */

static int look_up(struct writer *w, struct symbols *s, const uint64_t *addresses, uint32_t n,
		   uint32_t *first)
{
	int err;

	w->to = &w->frames;
	w->has_lines = quality_of(s) & (INSPECTION_DWARF | INSPECTION_GO);
	for (uint32_t i = 0; i < n; i++) {
		first[i] = count(&w->frames, sizeof(struct names_frame));
		err = symbols_lookup(s, addresses[i], add_frame, w);
		if (!err)
			err = w->err ? w->err : w->frames.error;
		if (err)
			return err;
		if (add_around(w, s, addresses[i]))
			drop_spans(w);
	}
	first[n] = count(&w->frames, sizeof(struct names_frame));
	return append_spans(w);
}

int names_write(struct buf *b, struct symbols *s, const uint64_t *addresses, uint32_t n)
{
	uint32_t *first = malloc(((size_t)n + 1) * sizeof(*first));
	struct names_block head = {.magic = NAMES_MAGIC, .n = n};
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
	head.nframes = count(&w.frames, sizeof(struct names_frame));
	head.nspans = count(&w.spans, sizeof(struct worker_span));
	head.quality = quality_of(s);
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
