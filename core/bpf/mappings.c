/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a process's mappings into map chunks: what can be stepped in the kernel, in order of
 * address, split into pieces where a language unwinder has claimed code. */
#include <errno.h>

#include "../../bpf/frame.h"
#include "bpf/sampler_state.h"

/* A list of chunks that is being written. */
struct writer {
	struct bpf_sampler *b;
	struct published *p;
	const struct publication *what;
	const struct marks *marks;
	int language; /* number of the unwinder whose program unwinds; -1: none */
	int awaited;  /* number of the unwinder whose program is being loaded; -1: none */
	struct map_chunk *last;
	uint32_t n; /* chunks */
};

static bool is_anonymous_code(const struct publication *what, const struct process_mapping *m)
{
	for (uint32_t i = 0; !m->file && i < what->nanonymous; i++)
		if (what->anonymous[i].lo == m->lo && what->anonymous[i].since == m->since)
			return true;
	return false;
}

/* When memory was last given out where the mapping is, after it was mapped; 0: never. */
static uint64_t changed_since(const struct writer *w, const struct process_mapping *m)
{
	uint64_t changed = 0;

	for (uint32_t i = 0; i < w->marks->n; i++) {
		const struct mark *at = &w->marks->at[i];

		if (at->lo < m->hi && at->hi > m->lo && at->changed >= m->since &&
		    at->changed > changed)
			changed = at->changed;
	}
	return changed;
}

/* false: code in the mapping is for user space. */
static bool describe(struct writer *w, struct process_mapping *m, struct chunk_mapping *to)
{
	if (is_anonymous_code(w->what, m)) {
		*to = (struct chunk_mapping){.lo = m->lo,
					     .hi = m->hi,
					     .bias = m->lo - m->offset,
					     .changed = changed_since(w, m)};
		return true;
	}
	if (!m->file || m->file->state != FILE_READY || !files_base(m) ||
	    m->file->id > FRAME_MAX_FILE)
		return false;
	*to = (struct chunk_mapping){.lo = m->lo,
				     .hi = m->hi,
				     .bias = m->bias,
				     .shift = m->lo - m->offset,
				     .file = m->file->id,
				     .changed = changed_since(w, m)};
	for (uint32_t i = 0; i < SAMPLER_TABLES; i++)
		if (slabs_place(w->b, m->file, w->b->unwinder[i], &to->table[i])) {
			w->p->lacks_table = true;
			return false;
		}
	return true;
}

static int append(struct writer *w, const struct chunk_mapping *m)
{
	struct map_chunk *c = w->last;

	if (c->n == CHUNK_MAPPINGS) {
		uint32_t next = w->n < MAX_CHUNKS ? chunks_alloc(w->b) : 0;

		if (!next)
			return -ENOSPC;
		c->next = next;
		c = &w->b->chunks.at[next];
		c->n = c->next = 0;
		w->last = c;
		w->n++;
	}
	c->mappings[c->n++] = *m;
	return 0;
}

/* ---- claims ---- */

/* A mapping that is appended piece by piece. */
struct pieces {
	struct writer *w;
	struct chunk_mapping rest; /* not appended yet */
	struct slab_range table;   /* the language unwinder's, of this file */
	bool foreign;              /* another unwinder has claimed a part */
	int r;
};

/* Appends [lo, hi), which is claimed, and what is below it. */
static void append_claimed(struct pieces *p, uint64_t lo, uint64_t hi, uint32_t arg)
{
	struct chunk_mapping piece = p->rest;

	lo = lo < piece.lo ? piece.lo : lo;
	hi = hi > piece.hi ? piece.hi : hi;
	if (p->r || lo >= hi)
		return;
	p->rest.lo = hi;
	piece.hi = lo;
	if (piece.lo < piece.hi)
		p->r = append(p->w, &piece);
	piece.lo = lo;
	piece.hi = hi;
	piece.claim = arg + 1;
	piece.language = p->table;
	if (!p->r)
		p->r = append(p->w, &piece);
}

static void on_claim(void *arg, const struct claim *c)
{
	struct pieces *p = arg;

	append_claimed(p, c->lo, c->hi, (uint32_t)c->arg);
}

static void note_foreign(void *arg, const struct claim *c)
{
	struct pieces *p = arg;

	p->foreign |= (int)c->unwinder != p->w->language || c->arg > INT32_MAX;
}

/* The language unwinder's claims of this mapping's file; NULL: none. */
static const struct inspection_slab *claims_of(const struct process_mapping *m, int language)
{
	const struct inspection_slab *slab = language < 0 || !m->file ? NULL
								      : m->file->slabs[language];

	return slab && slab->nclaims ? slab : NULL;
}

static int append_file(struct pieces *p, const struct process_mapping *m)
{
	const struct inspection_slab *slab = claims_of(m, p->w->language);

	if (slab)
		p->r = slabs_place(p->w->b, m->file, p->w->language, &p->table);
	for (uint32_t i = 0; slab && i < slab->nclaims; i++)
		append_claimed(p, slab->claims[i].lo + m->bias, slab->claims[i].hi + m->bias,
			       slab->claims[i].arg);
	return p->r;
}

static int append_anonymous(struct pieces *p, const struct process_mapping *m)
{
	claims_each_step(p->w->what->claims, p->w->what->process->id, m->lo, m->hi, on_claim, p);
	return p->r;
}

/* Is a part of this memory without a file claimed by an unwinder whose program does not run? */
static bool is_foreign(struct pieces *p, const struct process_mapping *m)
{
	claims_each_step(p->w->what->claims, p->w->what->process->id, m->lo, m->hi, note_foreign,
			 p);
	return p->foreign;
}

/* Appends the mapping, unless code in it is for user space. 0 or -errno. */
static int write_mapping(struct writer *w, struct process_mapping *m)
{
	struct pieces p = {.w = w};
	int r;

	/* Until its program is loaded, user space counts the stacks that pass through it. */
	if (claims_of(m, w->awaited) || !describe(w, m, &p.rest) || (!m->file && is_foreign(&p, m)))
		return 0;
	r = m->file ? append_file(&p, m) : append_anonymous(&p, m);
	if (!r && p.rest.lo < p.rest.hi)
		r = append(w, &p.rest);
	return r;
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

static bool has_claimed(const struct publication *what, uint32_t unwinder)
{
	const struct process *p = what->process;
	struct search s = {.unwinder = unwinder};

	for (uint32_t i = 0; i < p->n && !s.found; i++) {
		const struct process_mapping *m = &p->mappings[i];

		if (m->file)
			s.found = claims_of(m, (int)unwinder);
		else if (is_anonymous_code(what, m))
			claims_each_step(what->claims, p->id, m->lo, m->hi, find_claim, &s);
	}
	return s.found;
}

/* Chooses the language unwinder of the process: the first that has claimed code of it and can be
 * loaded. */
static void choose_language(struct writer *w)
{
	const struct plugin_set *set = w->b->set;

	w->language = w->awaited = -1;
	w->p->awaits_program = false;
	for (uint32_t u = 0; set && u < set->n && u < FILES_MAX_UNWINDERS; u++) {
		enum language_program_state state = LANGUAGE_NONE;

		if (has_claimed(w->what, u))
			state = language_program_state(w->b, u);
		if (state == LANGUAGE_READY) {
			w->language = (int)u;
			return;
		}
		w->p->awaits_program |= state != LANGUAGE_NONE;
		if (state == LANGUAGE_LOADING) {
			w->awaited = (int)u;
			return;
		}
	}
}

int chunks_write(struct bpf_sampler *b, struct published *p, const struct publication *what,
		 const struct marks *marks)
{
	struct map_chunk *head = &b->chunks.at[p->chunk];
	struct writer w = {.b = b, .p = p, .what = what, .marks = marks, .last = head, .n = 1};
	int r = 0;

	p->lacks_table = false;
	choose_language(&w);
	head->program = (uint32_t)(w.language + 1);
	for (uint32_t i = 0; !r && i < what->process->n; i++)
		r = write_mapping(&w, &what->process->mappings[i]);
	return r;
}
