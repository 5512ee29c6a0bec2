// SPDX-License-Identifier: Apache-2.0
/* The worker's side: source frames of addresses as one block, each text once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/dict.h"
#include "base/utf8.h"
#include "worker/names.h"

struct writer {
	struct dict texts;
	struct buf frames; /* struct names_frame, with ids of texts in place of positions */
	int err;
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

	buf_add(&w->frames, &frame, sizeof(frame));
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

static int look_up(struct writer *w, struct symbols *s, const uint64_t *addresses, uint32_t n,
		   uint32_t *first)
{
	int err;

	for (uint32_t i = 0; i < n; i++) {
		first[i] = (uint32_t)(w->frames.len / sizeof(struct names_frame));
		err = symbols_lookup(s, addresses[i], add_frame, w);
		if (!err)
			err = w->err ? w->err : w->frames.error;
		if (err)
			return err;
	}
	first[n] = (uint32_t)(w->frames.len / sizeof(struct names_frame));
	return 0;
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
	head.nframes = first[n];
	head.quality = quality_of(s);
	head.texts = texts.len;
	buf_add(b, &head, sizeof(head));
	buf_add(b, first, ((size_t)n + 1) * sizeof(*first));
	buf_add(b, w.frames.p, w.frames.len);
	buf_add(b, texts.p, texts.len);
	err = b->error;
out:
	free(first);
	dict_fini(&w.texts);
	buf_fini(&w.frames);
	buf_fini(&texts);
	return err;
}
