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

static void set_version(struct sampler_process *e, uint32_t version)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&e->version, version, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void free_chain(struct bpf_sampler *b, uint32_t element)
{
	for (uint32_t next; element; element = next) {
		struct sampler_process *e = &b->elements[element];

		next = e->next;
		e->id = e->changed = 0;
		e->n = e->next = 0;
		b->owners[element] = NULL;
		b->free_elements[b->nfree++] = element;
	}
}

static int set_life(struct bpf_sampler *b, const struct process *p)
{
	struct sampler_life life = {.id = p->id, .element = p->sampler.element};

	return bpf_map_update_elem(b->pids, &p->pid, &life, BPF_ANY) ? -errno : 0;
}

int bpf_sampler_put(struct bpf_sampler *b, struct process *p, const struct claims *claims)
{
	struct sampler_process *head;
	uint32_t version;
	int r;

	if (b->elsewhere)
		return -EXDEV;
	if (!p->sampler.element) {
		if (!b->nfree)
			return -ENOSPC;
		p->sampler.element = b->free_elements[--b->nfree];
	}
	b->clock++;
	head = &b->elements[p->sampler.element];
	version = (head->version | 1) + 1;
	set_version(head, version - 1);
	free_chain(b, head->next);
	head->next = head->n = 0;
	head->id = p->id;
	head->as_of = 0;
	b->owners[p->sampler.element] = p;
	r = bpf_mappings_write(b, p, claims, head);
	set_version(head, version);
	if (!r)
		r = set_life(b, p);
	if (r)
		bpf_sampler_forget(b, p);
	else
		p->sampler.version = version;
	/* From now on the kernel notes what changes of this; what had changed before is in records
	 * that are still to come. */
	p->sampler.since = clock_now();
	if (!r)
		__atomic_store_n(&head->changed, p->sampler.since, __ATOMIC_SEQ_CST);
	__atomic_store_n(&b->elements[0].changed, p->sampler.since, __ATOMIC_SEQ_CST);
	return r;
}

void bpf_sampler_confirm(struct bpf_sampler *b, struct process *p, uint64_t as_of)
{
	if (p->sampler.element)
		__atomic_store_n(&b->elements[p->sampler.element].as_of, as_of, __ATOMIC_SEQ_CST);
}

/* Its number may be another life's by now: then that one's entry stays. */
static void drop_life(struct bpf_sampler *b, const struct process *p)
{
	struct sampler_life life;

	if (!bpf_map_lookup_elem(b->pids, &p->pid, &life) && life.id == p->id)
		bpf_map_delete_elem(b->pids, &p->pid);
}

void bpf_sampler_forget(struct bpf_sampler *b, struct process *p)
{
	drop_life(b, p);
	if (p->sampler.element) {
		struct sampler_process *head = &b->elements[p->sampler.element];

		set_version(head, head->version | 1);
		free_chain(b, p->sampler.element);
	}
	p->sampler.element = 0;
}

void bpf_sampler_changed(struct bpf_sampler *b,
			 void (*each)(void *arg, struct process *, uint64_t when), void *arg)
{
	uint64_t last = __atomic_load_n(&b->elements[0].changed, __ATOMIC_RELAXED);

	if (last == b->last_change && !b->nchanged)
		return;
	b->last_change = last;
	b->nchanged = 0;
	for (uint32_t i = 1; i < b->nelements; i++) {
		uint64_t when = b->owners[i]
					? __atomic_load_n(&b->elements[i].changed, __ATOMIC_RELAXED)
					: 0;

		if (when > b->elements[i].as_of) {
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
	       __atomic_load_n(&b->elements[0].changed, __ATOMIC_RELAXED) != b->last_change;
}

/* ---- life ---- */

int bpf_processes_init(struct bpf_sampler *b)
{
	b->free_elements = calloc(b->nelements, sizeof(*b->free_elements));
	b->owners = calloc(b->nelements, sizeof(struct process *));
	if (!b->free_elements || !b->owners)
		return -ENOMEM;
	for (uint32_t i = b->nelements - 1; i; i--)
		b->free_elements[b->nfree++] = i;
	return 0;
}

void bpf_processes_fini(struct bpf_sampler *b)
{
	free(b->free_elements);
	free(b->owners);
}

void bpf_processes_stats(const struct bpf_sampler *b, struct bpf_sampler_stats *s)
{
	s->elements = b->nelements - 1 - b->nfree;
	s->elements_cap = b->nelements - 1;
}
