/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel is told of processes. It is memory that the programs read; nothing here waits for
 * the kernel. A walk that is under way while a process's mappings are rewritten, or a table that
 * only they named is given away, sees that the version has changed, and throws itself away.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bpf/sampler_state.h"

static void set_version(struct map_chunk *e, uint32_t version)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&e->version, version, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void free_chain(struct bpf_sampler *b, uint32_t chunk)
{
	for (uint32_t next; chunk; chunk = next) {
		struct map_chunk *e = &b->chunks[chunk];

		next = e->next;
		e->process = e->changed = 0;
		e->n = e->next = 0;
		b->owners[chunk] = NULL;
		b->free_chunks[b->nfree++] = chunk;
	}
}

static int set_pid(struct bpf_sampler *b, const struct process *p)
{
	struct pid_entry entry = {.process = p->id, .chunk = p->sampler.chunk};

	return bpf_map_update_elem(b->pids, &p->pid, &entry, BPF_ANY) ? -errno : 0;
}

int bpf_sampler_put(struct bpf_sampler *b, struct process *p, const struct claims *claims)
{
	struct map_chunk *head;
	uint32_t version;
	int r;

	if (b->elsewhere)
		return -EXDEV;
	if (!p->sampler.chunk) {
		if (!b->nfree)
			return -ENOSPC;
		p->sampler.chunk = b->free_chunks[--b->nfree];
	}
	b->clock++;
	head = &b->chunks[p->sampler.chunk];
	version = (head->version | 1) + 1;
	set_version(head, version - 1);
	free_chain(b, head->next);
	head->next = head->n = 0;
	head->process = p->id;
	head->as_of = 0;
	b->owners[p->sampler.chunk] = p;
	r = bpf_mappings_write(b, p, claims, head);
	set_version(head, version);
	if (!r)
		r = set_pid(b, p);
	if (r)
		bpf_sampler_forget(b, p);
	else
		p->sampler.version = version;
	/* From now on the kernel notes what changes of this; what had changed before is in records
	 * that are still to come. */
	p->sampler.since = clock_now();
	if (!r)
		__atomic_store_n(&head->changed, p->sampler.since, __ATOMIC_SEQ_CST);
	__atomic_store_n(&b->chunks[0].changed, p->sampler.since, __ATOMIC_SEQ_CST);
	return r;
}

void bpf_sampler_confirm(struct bpf_sampler *b, struct process *p, uint64_t as_of)
{
	if (p->sampler.chunk)
		__atomic_store_n(&b->chunks[p->sampler.chunk].as_of, as_of, __ATOMIC_SEQ_CST);
}

/* Its number may be another life's by now: then that one's entry stays. */
static void drop_pid(struct bpf_sampler *b, const struct process *p)
{
	struct pid_entry entry;

	if (!bpf_map_lookup_elem(b->pids, &p->pid, &entry) && entry.process == p->id)
		bpf_map_delete_elem(b->pids, &p->pid);
}

void bpf_sampler_forget(struct bpf_sampler *b, struct process *p)
{
	drop_pid(b, p);
	if (p->sampler.chunk) {
		struct map_chunk *head = &b->chunks[p->sampler.chunk];

		set_version(head, head->version | 1);
		free_chain(b, p->sampler.chunk);
	}
	p->sampler.chunk = 0;
}

void bpf_sampler_changed(struct bpf_sampler *b,
			 void (*each)(void *arg, struct process *, uint64_t when), void *arg)
{
	uint64_t last = __atomic_load_n(&b->chunks[0].changed, __ATOMIC_RELAXED);

	if (last == b->last_change && !b->nchanged)
		return;
	b->last_change = last;
	b->nchanged = 0;
	for (uint32_t i = 1; i < b->nchunks; i++) {
		uint64_t when = b->owners[i]
					? __atomic_load_n(&b->chunks[i].changed, __ATOMIC_RELAXED)
					: 0;

		if (when > b->chunks[i].as_of) {
			b->nchanged++;
			each(arg, b->owners[i], when);
		}
	}
}

bool bpf_sampler_has_news(const struct bpf_sampler *b)
{
	for (uint32_t u = 0; u < FILES_MAX_UNWINDERS; u++)
		if (b->languages[u].state == BPF_LANGUAGE_LOADING)
			return true;
	return b->nchanged ||
	       __atomic_load_n(&b->settings->unknown_ticks, __ATOMIC_RELAXED) !=
		       b->older_unknown_ticks ||
	       __atomic_load_n(&b->chunks[0].changed, __ATOMIC_RELAXED) != b->last_change;
}

/* ---- life ---- */

int bpf_processes_init(struct bpf_sampler *b)
{
	b->free_chunks = calloc(b->nchunks, sizeof(*b->free_chunks));
	b->owners = calloc(b->nchunks, sizeof(struct process *));
	if (!b->free_chunks || !b->owners)
		return -ENOMEM;
	for (uint32_t i = b->nchunks - 1; i; i--)
		b->free_chunks[b->nfree++] = i;
	return 0;
}

void bpf_processes_fini(struct bpf_sampler *b)
{
	free(b->free_chunks);
	free(b->owners);
}

void bpf_processes_stats(const struct bpf_sampler *b, struct bpf_sampler_stats *s)
{
	s->chunks = b->nchunks - 1 - b->nfree;
	s->chunks_cap = b->nchunks - 1;
}
