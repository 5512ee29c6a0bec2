/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/internal/preceding.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void drop(struct preceding_continuation *c)
{
	free((void *)c->is.frames);
	c->is.frames = NULL;
}

void preceding_add(struct preceding *p, pid_t tid, uint64_t time, uint64_t process,
		   const struct sample_continuation *about, const struct walk *w)
{
	struct preceding_continuation *c = &p->continuations[p->next];
	struct walk_frame *frames;
	uint32_t kernel = 0, n;

	while (kernel < w->n && w->frames[kernel].kind == FRAME_KERNEL)
		kernel++;
	n = w->n - kernel;
	frames = n ? malloc(n * sizeof(*frames)) : NULL;
	if (!frames)
		return;
	p->next = (p->next + 1) % PRECEDING_MOST;
	drop(c);
	memcpy(frames, w->frames + kernel, n * sizeof(*frames));
	*c = (struct preceding_continuation){*about, time, process, tid};
	c->is.frames = frames;
	c->is.n = n;
}

void preceding_take(struct preceding *p, const struct sample *s, uint64_t process,
		    struct sample_continuation to[SAMPLE_CONTINUATIONS], uint32_t *n)
{
	uint64_t since = s->continuations.since;

	*n = 0;
	for (uint32_t i = 0; i < PRECEDING_MOST; i++) {
		struct preceding_continuation *c =
			&p->continuations[(p->next + i) % PRECEDING_MOST];

		if (!c->is.frames || c->tid != s->tid)
			continue;
		if (!since || c->time < since || c->time > s->time || c->process != process ||
		    *n == SAMPLE_CONTINUATIONS) {
			drop(c);
			continue;
		}
		to[(*n)++] = c->is;
		c->is.frames = NULL;
	}
}

/* A label of a record: name and value. */
struct text {
	const unsigned char *key, *value;
	struct record_text head;
};

static int compare(const struct text *a, const struct text *b)
{
	size_t n = a->head.key < b->head.key ? a->head.key : b->head.key;
	int r = memcmp(a->key, b->key, n);

	return r ? r : a->head.key - b->head.key;
}

/* Inserts it by its name, unless there is one of this name. Returns how many there are. */
static uint32_t insert(struct text *sorted, uint32_t n, const struct text *t)
{
	uint32_t i = n;

	for (; i && compare(&sorted[i - 1], t) > 0; i--)
		;
	if (i && !compare(&sorted[i - 1], t))
		return n;
	memmove(&sorted[i + 1], &sorted[i], (n - i) * sizeof(*sorted));
	sorted[i] = *t;
	return n + 1;
}

/* Sorts the labels of a record. Returns how many there are. */
static uint32_t sort_texts(const struct record_labels *r, struct text sorted[RECORD_TEXTS])
{
	const unsigned char *p = r->texts;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		struct text t;

		memcpy(&t.head, p, sizeof(t.head));
		t.key = p + sizeof(t.head);
		t.value = t.key + t.head.key;
		p = t.value + t.head.value;
		n = insert(sorted, n, &t);
	}
	return n;
}

#define MORE "..."

/* The bytes that are kept of a text; of a truncated one, before MORE: complete characters. */
static uint8_t kept(const unsigned char *text, uint8_t len, bool truncated)
{
	uint8_t n = len;

	if (!truncated || len < strlen(MORE))
		return len;
	n -= strlen(MORE);
	while (n && n > len - 6 && (text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* Puts a text to *to, moves it behind, and puts how many bytes it has to *len. */
static void put(unsigned char **to, unsigned char *len, const unsigned char *text, uint8_t n,
		bool truncated)
{
	uint8_t keep = kept(text, n, truncated);

	memcpy(*to, text, keep);
	*to += keep;
	*len = keep;
	if (keep == n)
		return;
	memcpy(*to, MORE, strlen(MORE));
	*to += strlen(MORE);
	*len += strlen(MORE);
}

void preceding_set_ids(struct preceding *p, const struct record_labels *r)
{
	struct text sorted[RECORD_TEXTS];
	unsigned char *to = p->texts;
	uint32_t n = sort_texts(r, sorted);

	p->ids = (struct sample_ids){.trace_id = {r->trace_id[0], r->trace_id[1]},
				     .span_id = r->span_id,
				     .texts = p->texts};
	for (uint32_t i = 0; i < n; i++) {
		const struct text *t = &sorted[i];

		unsigned char *len = to;

		to += 2;
		put(&to, &len[0], t->key, t->head.key, t->head.truncated & 1);
		put(&to, &len[1], t->value, t->head.value, t->head.truncated & 2);
	}
	p->ids.texts_len = (uint32_t)(to - p->texts);
}

struct sample_ids preceding_take_ids(struct preceding *p)
{
	struct sample_ids ids = p->ids;

	p->ids = (struct sample_ids){0};
	return ids;
}

void preceding_fini(struct preceding *p)
{
	for (uint32_t i = 0; i < PRECEDING_MOST; i++)
		drop(&p->continuations[i]);
}
