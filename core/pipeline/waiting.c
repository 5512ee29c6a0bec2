/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/internal/waiting.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define SECOND_NS 1000000000u

void waiting_init(struct waiting_queue *q, uint64_t limit, uint64_t share)
{
	*q = (struct waiting_queue){.limit = limit, .share = share};
	q->last = &q->first;
}

static void release(struct waiting *w)
{
	walk_steps_release(w->steps);
	munmap(w, w->bytes);
}

void waiting_fini(struct waiting_queue *q)
{
	struct waiting *next;

	for (struct waiting *w = q->first; w; w = next) {
		next = w->next;
		release(w);
	}
}

/* A process may use its share, and at most half of the room is filled within a second, so that a
 * process that keeps mapping new files does not take the room of others. */
static bool has_room(struct waiting_queue *q, uint64_t of_process, uint64_t time, uint64_t bytes)
{
	if (time - q->second_began > SECOND_NS) {
		q->second_began = time;
		q->second_bytes = 0;
	}
	return q->bytes + bytes <= q->limit && of_process + bytes <= q->share &&
	       q->second_bytes + bytes <= q->limit / 2;
}

static uint64_t continuation_bytes(const struct sample *s)
{
	uint64_t bytes = s->continuations.n * sizeof(*s->continuations.at);

	for (uint32_t i = 0; i < s->continuations.n; i++)
		bytes += s->continuations.at[i].n * sizeof(struct walk_frame);
	return bytes;
}

/* Copies the sample's continuations to this place. */
static void copy_continuations(struct sample *s, char *to)
{
	uint32_t n = s->continuations.n;
	struct sample_continuation *at = (void *)to;
	char *frames = (char *)(at + n);

	if (n)
		memcpy(at, s->continuations.at, n * sizeof(*at));
	for (uint32_t i = 0; i < n; i++) {
		size_t bytes = at[i].n * sizeof(struct walk_frame);

		at[i].frames = memcpy(frames, at[i].frames, bytes);
		frames += bytes;
	}
	s->continuations.at = at;
}

/* The kernel's frames, the stack and the labels. */
static void copy_rest(struct sample *to, const struct sample *s, char *behind)
{
	to->kernel = (uint64_t *)(void *)behind;
	if (s->nkernel)
		memcpy(behind, s->kernel, s->nkernel * 8ull);
	behind += s->nkernel * 8ull;
	to->stack = behind;
	if (s->stack_len)
		memcpy(behind, s->stack, s->stack_len);
	behind += s->stack_len;
	if (s->ids.texts_len)
		to->ids.texts = memcpy(behind, s->ids.texts, s->ids.texts_len);
}

struct waiting *waiting_add(struct waiting_queue *q, struct process *proc, uint64_t *process_bytes,
			    const struct sample *s, const struct pipeline_route *route,
			    const char *comm, const struct waiting_walk *walk)
{
	uint64_t frames = walk ? walk->n * sizeof(*walk->frames) : 0;
	uint64_t returns = s->returns.n * sizeof(*s->returns.at);
	uint64_t continued = continuation_bytes(s);
	uint64_t bytes = sizeof(struct waiting) + frames + returns + continued + s->nkernel * 8ull +
			 s->stack_len + s->ids.texts_len;
	char *behind;
	struct waiting *w;

	if (!has_room(q, *process_bytes, s->time, bytes))
		return NULL;
	/* Excluded from core dumps of this program, because stack copies are other programs'
	 * data. */
	w = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return NULL;
	madvise(w, bytes, MADV_DONTDUMP);
	*w = (struct waiting){.process = proc, .route = *route, .sample = *s, .bytes = bytes};
	snprintf(w->comm, sizeof(w->comm), "%s", comm);
	behind = (char *)(w + 1) + frames;
	if (walk) {
		w->walk = *walk;
		w->walk.frames = memcpy(w + 1, walk->frames, frames);
	}
	if (returns)
		w->sample.returns.at = memcpy(behind, s->returns.at, returns);
	behind += returns;
	copy_continuations(&w->sample, behind);
	behind += continued;
	copy_rest(&w->sample, s, behind);
	*q->last = w;
	q->last = &w->next;
	q->bytes += bytes;
	q->second_bytes += bytes;
	*process_bytes += bytes;
	return w;
}

void waiting_each(struct waiting_queue *q, bool (*done)(void *arg, struct waiting *), void *arg)
{
	struct waiting *w = q->first, *next;

	q->first = NULL;
	q->last = &q->first;
	for (; w; w = next) {
		next = w->next;
		if (done(arg, w)) {
			q->bytes -= w->bytes;
			release(w);
			continue;
		}
		w->next = NULL;
		*q->last = w;
		q->last = &w->next;
	}
}

uint64_t waiting_count(const struct waiting_queue *q)
{
	uint64_t n = 0;

	for (const struct waiting *w = q->first; w; w = w->next)
		n++;
	return n;
}

void waiting_drop_slot(struct waiting_queue *q, uint32_t slot)
{
	for (struct waiting *w = q->first; w; w = w->next)
		w->route.slots &= ~(1ull << slot);
}
