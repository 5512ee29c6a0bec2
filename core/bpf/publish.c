/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/publish.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "base/assert.h"
#include "bpf/internal/sampler_state.h"

/*
 * The programs read while this writes. A walk that runs while a process's mappings are rewritten,
 * or while a table that only they name is evicted, sees that the version changed and is discarded.
 */
static void set_version(struct map_chunk *c, uint32_t version)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&c->version, version, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Reads from the list that is published what changed of it and is not confirmed. */
static void marks_read(const struct bpf_sampler *b, const struct map_chunk *head, struct marks *to)
{
	to->n = 0;
	to->blurred = false;
	for (const struct map_chunk *c = head; c; c = c->next ? &b->chunks.at[c->next] : NULL)
		for (uint32_t i = 0; i < c->n; i++) {
			const struct chunk_mapping *m = &c->mappings[i];

			if (m->changed <= head->as_of)
				continue;
			if (to->n < MAX_MARKS)
				to->at[to->n++] = (struct mark){m->lo, m->hi, m->changed};
			else
				to->blurred = true;
		}
}

static int set_pid_entry(struct bpf_sampler *b, const struct published *p)
{
	struct pid_entry entry = {.process = p->process->id, .chunk = p->chunk};

	return bpf_map_update_elem(b->fds.pids, &p->process->pid, &entry, BPF_ANY) ? -errno : 0;
}

static void mark_at(struct chunk_mapping *m, uint64_t when)
{
	uint64_t before = __atomic_load_n(&m->changed, __ATOMIC_SEQ_CST);

	while (before < when && !__atomic_compare_exchange_n(&m->changed, &before, when, false,
							     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void mark_range(struct bpf_sampler *b, struct map_chunk *head,
		       const struct unmarked_range *at, uint64_t when)
{
	uint64_t lo = __atomic_load_n(&at->lo, __ATOMIC_SEQ_CST);
	uint64_t hi = __atomic_load_n(&at->hi, __ATOMIC_SEQ_CST);

	for (struct map_chunk *c = head; c; c = c->next ? &b->chunks.at[c->next] : NULL)
		for (uint32_t i = 0; i < c->n; i++)
			if (c->mappings[i].lo < hi && c->mappings[i].hi > lo)
				mark_at(&c->mappings[i], when);
}

/* Memory was given out while the list had this version, which was being written: marks what is
 * there, so that stacks that do not pass through it are unwound in the kernel. */
static void mark_unmarked(struct bpf_sampler *b, struct map_chunk *head, uint32_t version)
{
	uint64_t when = __atomic_load_n(&head->blurred, __ATOMIC_SEQ_CST);
	uint32_t n;

	if (!when || __atomic_load_n(&head->unmarked.version, __ATOMIC_SEQ_CST) != version)
		return;
	n = __atomic_load_n(&head->unmarked.n, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < n && i < UNMARKED_RANGES; i++)
		mark_range(b, head, &head->unmarked.at[i], when);
	/* fails if memory was given out since */
	__atomic_compare_exchange_n(&head->blurred, &when, 0, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
}

/* Marks what was given out while the list was written. The program may come to note it only when
 * the list is complete. */
static void mark_late(struct bpf_sampler *b, const struct published *p)
{
	if (!p->blurred)
		mark_unmarked(b, &b->chunks.at[p->chunk], p->version - 1);
}

/* Writes the list of chunks that begins at p->chunk, and makes it valid. */
static int write_list(struct bpf_sampler *b, struct published *p, const struct publication *what)
{
	struct map_chunk *head = &b->chunks.at[p->chunk];
	struct marks marks;
	int r;

	chunks_place(b, p, what);
	mark_late(b, p);
	/* Versions rise over all processes, so that what a record was unwound over can be compared
	 * even if the process has other chunks by now. */
	b->chunks.versions += 2;
	set_version(head, b->chunks.versions - 1);
	p->blurred = __atomic_load_n(&head->blurred, __ATOMIC_SEQ_CST) > head->as_of;
	marks_read(b, head, &marks);
	chunks_free(b, head->next);
	head->next = head->n = 0;
	head->process = what->process->id;
	b->chunks.owners[p->chunk] = p;
	b->slabs.clock++;
	r = chunks_write(b, p, what, &marks);
	p->blurred |= marks.blurred;
	if (marks.blurred)
		head->blurred = head->changed;
	p->version = b->chunks.versions;
	set_version(head, p->version);
	mark_late(b, p);
	return r;
}

int bpf_publish(struct bpf_sampler *b, struct published *p, const struct publication *what)
{
	int r;

	if (b->foreign_pids)
		return -EXDEV;
	if (!p->chunk)
		p->chunk = chunks_alloc(b);
	if (!p->chunk)
		return -ENOSPC;
	p->process = what->process;
	slabs_drop_replaced(b);
	r = write_list(b, p, what);
	if (!r)
		r = set_pid_entry(b, p);
	if (r)
		bpf_publish_withdraw(b, p);
	return r;
}

void bpf_publish_confirm(struct bpf_sampler *b, const struct published *p, uint64_t as_of)
{
	fusee_assert(p->chunk);
	__atomic_store_n(&b->chunks.at[p->chunk].as_of, as_of, __ATOMIC_SEQ_CST);
}

/* The pid may be another process's by now, whose entry stays. */
static void delete_pid_entry(struct bpf_sampler *b, const struct process *p)
{
	struct pid_entry entry;

	if (!bpf_map_lookup_elem(b->fds.pids, &p->pid, &entry) && entry.process == p->id)
		bpf_map_delete_elem(b->fds.pids, &p->pid);
}

void bpf_publish_withdraw(struct bpf_sampler *b, struct published *p)
{
	if (!p->chunk)
		return;
	delete_pid_entry(b, p->process);
	set_version(&b->chunks.at[p->chunk], b->chunks.at[p->chunk].version | 1);
	chunks_free(b, p->chunk);
	p->chunk = 0;
	p->process = NULL;
}

uint32_t bpf_publish_free_chunks(const struct bpf_sampler *b)
{
	return b->chunks.nfree;
}

uint32_t bpf_publish_chunks(const struct bpf_sampler *b, const struct published *p)
{
	uint32_t n = 0;

	for (uint32_t chunk = p->chunk; chunk; chunk = b->chunks.at[chunk].next)
		n++;
	return n;
}

bool bpf_publish_holds(const struct bpf_sampler *b, const struct published *p)
{
	const struct map_chunk *c = &b->chunks.at[p->chunk];

	return p->chunk && p->chunk < b->chunks.n && b->chunks.owners[p->chunk] == p &&
	       c->process == p->process->id && c->version == p->version && !(c->version & 1);
}

bool bpf_publish_has(const struct bpf_sampler *b, const struct published *p, uint64_t lo,
		     uint64_t hi)
{
	for (uint32_t chunk = p->chunk; chunk; chunk = b->chunks.at[chunk].next)
		for (uint32_t i = 0; i < b->chunks.at[chunk].n; i++) {
			const struct chunk_mapping *m = &b->chunks.at[chunk].mappings[i];

			if (m->lo < hi && m->hi > lo)
				return true;
		}
	return false;
}

void bpf_publish_each_unconfirmed(struct bpf_sampler *b,
				  void (*each)(void *arg, struct published *, uint64_t when),
				  void *arg)
{
	struct chunks *c = &b->chunks;
	uint64_t last = __atomic_load_n(&c->at[0].changed, __ATOMIC_RELAXED);

	if (last == c->last_change && !c->nunconfirmed)
		return;
	c->last_change = last;
	c->nunconfirmed = 0;
	for (uint32_t i = 1; i < c->n; i++) {
		uint64_t when = c->owners[i] ? __atomic_load_n(&c->at[i].changed, __ATOMIC_RELAXED)
					     : 0;

		if (when > c->at[i].as_of) {
			c->nunconfirmed++;
			mark_late(b, c->owners[i]);
			each(arg, c->owners[i], when);
		}
	}
}

bool bpf_publish_is_pending(const struct bpf_sampler *b)
{
	for (uint32_t u = 0; u < FILES_MAX_UNWINDERS; u++)
		if (b->languages[u].state == LANGUAGE_LOADING)
			return true;
	return b->chunks.nunconfirmed ||
	       __atomic_load_n(&b->settings->unknown_ticks, __ATOMIC_RELAXED) !=
		       b->unknown_ticks.older ||
	       __atomic_load_n(&b->chunks.at[0].changed, __ATOMIC_RELAXED) != b->chunks.last_change;
}
