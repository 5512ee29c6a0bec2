/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/internal/preceding.h"

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
