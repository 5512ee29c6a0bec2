/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's mappings as the kernel's sampler wants them: what can be stepped there, in order of
 * address, cut into pieces where a language unwinder has claimed code.
 */
#include <errno.h>

#include "bpf/sampler_state.h"

/* false: user space has to look at code in it. */
static bool describe(struct bpf_sampler *b, struct process_mapping *m, struct chunk_mapping *to)
{
	if (!m->file && m->plain) {
		*to = (struct chunk_mapping){.lo = m->lo, .hi = m->hi, .bias = m->lo - m->offset};
		return true;
	}
	if (!m->file || m->file->state != FILE_READY || !files_base(m) ||
	    m->file->id > FRAME_MAX_FILE)
		return false;
	*to = (struct chunk_mapping){.lo = m->lo,
				     .hi = m->hi,
				     .bias = m->bias,
				     .shift = m->lo - m->offset,
				     .file = m->file->id};
	for (uint32_t i = 0; i < SAMPLER_TABLES; i++)
		if (bpf_tables_place(b, m->file, b->unwinder[i], &to->table[i]))
			return false;
	return true;
}

/* A chain of chunks that is being written. */
struct chain {
	struct bpf_sampler *b;
	struct map_chunk *last;
	uint32_t n;
};

static int append(struct chain *c, const struct chunk_mapping *m)
{
	struct map_chunk *e = c->last;

	if (e->n == CHUNK_MAPPINGS) {
		if (!c->b->nfree || c->n == MAX_CHUNKS)
			return -ENOSPC;
		e->next = c->b->free_chunks[--c->b->nfree];
		e = &c->b->chunks[e->next];
		e->n = e->next = 0;
		c->last = e;
		c->n++;
	}
	e->mappings[e->n++] = *m;
	return 0;
}

/* ---- claims ---- */

/* A mapping on its way into the chain, piece by piece. */
struct pieces {
	struct chain *chain;
	int language;              /* the process's: index in the set, or -1 */
	struct chunk_mapping rest; /* what was not appended yet */
	struct slab_range table;   /* the language unwinder's, of this file */
	bool others;               /* somebody else's claims are among them */
	int r;
};

/* [lo, hi) is claimed, above what was claimed before. */
static void cut_piece(struct pieces *p, uint64_t lo, uint64_t hi, uint32_t arg)
{
	struct chunk_mapping piece = p->rest;

	lo = lo < piece.lo ? piece.lo : lo;
	hi = hi > piece.hi ? piece.hi : hi;
	if (p->r || lo >= hi)
		return;
	p->rest.lo = hi;
	piece.hi = lo;
	if (piece.lo < piece.hi)
		p->r = append(p->chain, &piece);
	piece.lo = lo;
	piece.hi = hi;
	piece.claim = arg + 1;
	piece.language = p->table;
	if (!p->r)
		p->r = append(p->chain, &piece);
}

static void on_claim(void *arg, const struct claim *c)
{
	struct pieces *p = arg;

	if ((int)c->unwinder != p->language || c->arg > INT32_MAX)
		p->others = true;
	else
		cut_piece(p, c->lo, c->hi, (uint32_t)c->arg);
}

static void note_other(void *arg, const struct claim *c)
{
	struct pieces *p = arg;

	p->others |= (int)c->unwinder != p->language || c->arg > INT32_MAX;
}

/* What the language unwinder claims of this mapping's file; NULL: nothing. */
static const struct inspection_slab *claims_of(const struct process_mapping *m, int language)
{
	const struct inspection_slab *slab = language < 0 || !m->file ? NULL
								      : m->file->slabs[language];

	return slab && slab->nclaims ? slab : NULL;
}

static int append_file(struct pieces *p, const struct process_mapping *m)
{
	const struct inspection_slab *slab = claims_of(m, p->language);

	if (slab)
		p->r = bpf_tables_place(p->chain->b, m->file, p->language, &p->table);
	for (uint32_t i = 0; slab && i < slab->nclaims; i++)
		cut_piece(p, slab->claims[i].lo + m->bias, slab->claims[i].hi + m->bias,
			  slab->claims[i].arg);
	return p->r;
}

/* Appends the mapping. false: user space has to look at it. */
static bool write_mapping(struct chain *c, const struct process *proc, struct process_mapping *m,
			  int language, const struct claims *claims, int *r)
{
	struct pieces p = {.chain = c, .language = language};

	if (!describe(c->b, m, &p.rest))
		return false;
	if (m->file) {
		*r = append_file(&p, m);
	} else {
		claims_each_step(claims, proc->id, m->lo, m->hi, note_other, &p);
		if (p.others)
			return false;
		claims_each_step(claims, proc->id, m->lo, m->hi, on_claim, &p);
		*r = p.r;
	}
	if (!*r && p.rest.lo < p.rest.hi)
		*r = append(c, &p.rest);
	return true;
}

struct search {
	uint32_t unwinder;
	bool found;
};

static void find_claim(void *arg, const struct claim *c)
{
	struct search *s = arg;

	s->found |= c->unwinder == s->unwinder;
}

static bool has_claimed(const struct process *p, uint32_t unwinder, const struct claims *claims)
{
	struct search s = {.unwinder = unwinder};

	for (uint32_t i = 0; i < p->n && !s.found; i++) {
		const struct process_mapping *m = &p->mappings[i];

		if (m->file)
			s.found = claims_of(m, (int)unwinder);
		else if (m->plain)
			claims_each_step(claims, p->id, m->lo, m->hi, find_claim, &s);
	}
	return s.found;
}

/* The language unwinder that steps in this process: the first that has claimed code of it and can
 * be loaded; -1: none. *awaited: the one that is being loaded, -1: none. */
static int language_of(struct bpf_sampler *b, struct process *p, const struct claims *claims,
		       int *awaited)
{
	*awaited = -1;
	p->sampler.waits = false;
	for (uint32_t u = 0; b->set && u < b->set->n && u < FILES_MAX_UNWINDERS; u++) {
		enum bpf_language_state state = BPF_LANGUAGE_NONE;

		if (has_claimed(p, u, claims))
			state = bpf_language_state(b, u);
		if (state == BPF_LANGUAGE_READY)
			return (int)u;
		p->sampler.waits |= state != BPF_LANGUAGE_NONE;
		if (state == BPF_LANGUAGE_LOADING) {
			*awaited = (int)u;
			break;
		}
	}
	return -1;
}

int bpf_mappings_write(struct bpf_sampler *b, struct process *p, const struct claims *claims,
		       struct map_chunk *head)
{
	struct chain c = {.b = b, .last = head, .n = 1};
	int awaited, language = language_of(b, p, claims, &awaited), r = 0;

	head->program = (uint32_t)(language + 1);
	for (uint32_t i = 0; !r && i < p->n; i++) {
		struct process_mapping *m = &p->mappings[i];

		/* Until its program is there user space counts the stacks that pass through it. */
		m->told = !claims_of(m, awaited) && write_mapping(&c, p, m, language, claims, &r);
	}
	return r;
}
