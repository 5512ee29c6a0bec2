/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a process's mappings into map chunks: what can be stepped in the kernel, in order of
 * address, split into pieces where a language unwinder has claimed code. */
#include <errno.h>
#include <string.h>

#include "../../bpf/frame.h"
#include "bpf/internal/sampler_state.h"

/* A list of chunks that is being written. */
struct writer {
	struct bpf_sampler *b;
	struct published *p;
	const struct publication *what;
	const struct marks *marks;
	struct map_chunk *last;
	uint32_t n;  /* chunks */
	bool follow; /* a claim has FUSEE_CLAIM_REGISTERS */
	struct claimed_range claimed[CLAIMED_RANGES];
};

static bool is_anonymous_code(const struct publication *what, const struct process_mapping *m)
{
	for (uint32_t i = 0; !m->file && i < what->nanonymous; i++)
		if (what->anonymous[i].lo == m->lo && what->anonymous[i].since == m->since)
			return true;
	return false;
}

/* When memory was last given out in [lo, hi), after `since`; 0: never. */
static uint64_t changed_since(const struct writer *w, uint64_t since, uint64_t lo, uint64_t hi)
{
	uint64_t changed = 0;

	for (uint32_t i = 0; i < w->marks->n; i++) {
		const struct mark *at = &w->marks->at[i];

		if (at->lo < hi && at->hi > lo && at->changed >= since && at->changed > changed)
			changed = at->changed;
	}
	return changed;
}

/* Memory without a file, with the first table that was made of it. Where that finds no room, the
 * next unwinder steps. */
static void describe_anonymous(struct writer *w, const struct process_mapping *m,
			       struct chunk_mapping *to)
{
	uint64_t id;

	*to = (struct chunk_mapping){.lo = m->lo,
				     .hi = m->hi,
				     .bias = m->lo - m->offset,
				     .changed = changed_since(w, m->since, m->lo, m->hi)};
	for (uint32_t i = 0; i < SAMPLER_TABLES && !to->made; i++) {
		const struct inspection_slab *slab =
			w->b->unwinder[i] < 0
				? NULL
				: made_code_table(w->what->made, w->what->process->id, m,
						  (uint32_t)w->b->unwinder[i], &id);

		if (!slab)
			continue;
		if (slabs_place_made(w->b, id, w->b->unwinder[i], slab, &to->table[i]))
			w->p->lacks_table = true;
		else
			to->made = id;
	}
}

/* false: code in the mapping is for user space. */
static bool describe(struct writer *w, struct process_mapping *m, struct chunk_mapping *to)
{
	if (!m->file) {
		describe_anonymous(w, m, to);
		return true;
	}
	if (m->file->state != FILE_READY || !files_base(m) || m->file->id > FRAME_MAX_FILE)
		return false;
	*to = (struct chunk_mapping){.lo = m->lo,
				     .hi = m->hi,
				     .bias = m->bias,
				     .shift = m->lo - m->offset,
				     .file = m->file->id,
				     .changed = changed_since(w, m->since, m->lo, m->hi)};
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
	const struct process_mapping *m;
	struct chunk_mapping rest; /* not appended yet */
	uint64_t end; /* of claims: of the file's mapping, or before the next mapping */
	bool foreign; /* a part is claimed by an unwinder whose program does not run */
	int r;
};

static enum language_program_state state_of(const struct writer *w, uint32_t unwinder)
{
	return unwinder < FILES_MAX_UNWINDERS ? language_program_state(w->b, unwinder)
					      : LANGUAGE_NONE;
}

/* Sets what the step reads. A table that finds no room is missing from the piece, and the step
 * finds that out. */
static void set_unwinder(struct pieces *p, struct chunk_mapping *piece, uint32_t unwinder,
			 uint32_t flags)
{
	struct writer *w = p->w;
	const struct file *f = p->m->file;
	const uint32_t *words;
	uint64_t n;
	int r;

	if (state_of(w, unwinder) != LANGUAGE_READY) {
		piece->unwinder = NO_PROGRAM;
		return;
	}
	piece->unwinder = (uint16_t)(unwinder + 1);
	piece->registers = (flags & FUSEE_CLAIM_REGISTERS) != 0;
	w->follow |= piece->registers;
	w->p->program = w->p->program ? w->p->program : unwinder + 1;
	if (!f || !f->slabs[unwinder])
		f = files_with_table(w->what->process, unwinder);
	r = f ? slabs_place(w->b, f, (int)unwinder, &piece->language) : 0;
	words = claims_words(w->what->claims, w->what->process->id, unwinder, &n);
	if (!r && words)
		r = slabs_place_words(w->b, w->what->process->id, unwinder, words, n,
				      &piece->words);
	w->p->lacks_table |= r != 0;
}

#define NEAR_CLAIMS (16ull << 20)

/* Notes where claims are, in order of address. The last range has those that are far away, too. */
static void note_claimed(struct writer *w, uint64_t lo, uint64_t hi)
{
	uint32_t i = 0;

	while (i + 1 < CLAIMED_RANGES && w->claimed[i].bytes &&
	       lo - (w->claimed[i].lo + w->claimed[i].bytes) > NEAR_CLAIMS)
		i++;
	if (!w->claimed[i].bytes)
		w->claimed[i].lo = lo;
	w->claimed[i].bytes = hi - w->claimed[i].lo;
}

/* Is this code for user space? A claim's step that reads nothing is called there, too, so samples
 * have its frames before its program is loaded. */
static bool is_for_user_space(const struct writer *w, const struct claim *c)
{
	enum language_program_state state = state_of(w, c->unwinder);

	return c->flags & FUSEE_CLAIM_READS_NOTHING &&
	       (state == LANGUAGE_LOADING || state == LANGUAGE_LATER);
}

/* Appends the code that is claimed, by its addresses in the process, and what is below it. Memory
 * is claimed as it is reserved: code in what is not mapped yet can be stepped as soon as it is. */
static void add_claim(void *arg, const struct claim *c)
{
	struct pieces *p = arg;
	struct chunk_mapping piece = p->rest;
	uint64_t lo = c->lo < piece.lo ? piece.lo : c->lo, hi = c->hi > p->end ? p->end : c->hi;

	if (p->r || lo >= hi)
		return;
	p->rest.lo = hi;
	piece.hi = lo;
	if (piece.lo < piece.hi)
		p->r = append(p->w, &piece);
	if (is_for_user_space(p->w, c))
		return;
	piece.lo = lo;
	piece.hi = hi;
	piece.arg = c->arg;
	piece.changed = changed_since(p->w, p->m->since, lo, hi);
	set_unwinder(p, &piece, c->unwinder, c->flags);
	if (p->m->file && piece.unwinder != NO_PROGRAM)
		note_claimed(p->w, lo, hi);
	if (!p->r)
		p->r = append(p->w, &piece);
}

/* Code of the process is claimed by this unwinder: notes if its program is yet to come. */
static enum language_program_state note_program(struct writer *w, uint32_t unwinder)
{
	enum language_program_state state = state_of(w, unwinder);

	if (state == LANGUAGE_LOADING || state == LANGUAGE_LATER) {
		w->p->awaits_program = true;
		language_program_await(w->b, unwinder);
	}
	return state;
}

static void note_foreign(void *arg, const struct claim *c)
{
	struct pieces *p = arg;

	p->foreign |= note_program(p->w, c->unwinder) != LANGUAGE_READY;
}

/* The claims of several unwinders of one file, in order of address: the next that ends above `at`.
 * Where claims overlap, that of the unwinder that comes first counts. */
static const struct inspection_claim *next_claim(const struct file *f, uint64_t at, uint32_t *of)
{
	const struct inspection_claim *next = NULL;

	for (uint32_t u = 0; u < FILES_MAX_UNWINDERS; u++) {
		const struct inspection_slab *slab = f->slabs[u];

		for (uint32_t i = 0; slab && i < slab->nclaims; i++) {
			const struct inspection_claim *c = &slab->claims[i];

			if (c->hi <= at)
				continue;
			if (!next || c->lo < next->lo) {
				next = c;
				*of = u;
			}
			break;
		}
	}
	return next;
}

static int append_file(struct pieces *p, const struct process_mapping *m)
{
	const struct inspection_claim *c;
	uint32_t unwinder = 0;

	while (m->file->claimed && !p->r && p->rest.lo < p->rest.hi &&
	       (c = next_claim(m->file, p->rest.lo - m->bias, &unwinder)) &&
	       c->lo + m->bias < p->rest.hi) {
		const struct claim claim = {.lo = c->lo + m->bias,
					    .hi = c->hi + m->bias,
					    .arg = c->arg,
					    .unwinder = unwinder,
					    .flags = (uint32_t)c->flags};

		add_claim(p, &claim);
	}
	return p->r;
}

static int append_anonymous(struct pieces *p, const struct process_mapping *m)
{
	claims_each_step(p->w->what->claims, p->w->what->process->id, m->lo, m->hi, add_claim, p);
	/* Nothing else is published of memory that no walk in user space has stepped: it was not
	 * offered for claims yet. */
	if (!is_anonymous_code(p->w->what, m))
		p->rest.lo = p->rest.hi;
	return p->r;
}

/* Is a part of this memory without a file claimed by an unwinder whose program does not run? */
static bool is_foreign(struct pieces *p, const struct process_mapping *m)
{
	claims_each_step(p->w->what->claims, p->w->what->process->id, m->lo, m->hi, note_foreign,
			 p);
	return p->foreign;
}

/* Has the file code for the unwinder's program? Of late unwinders it has a table, and the code is
 * made at run time. */
static bool is_for(const struct writer *w, const struct file *f, uint32_t unwinder)
{
	const struct inspection_slab *slab = f->slabs[unwinder];

	return slab && (slab->nclaims || (slab->n && w->b->late >> unwinder & 1));
}

static void note_awaited(struct writer *w, const struct process_mapping *m)
{
	for (uint32_t u = 0; m->file && u < FILES_MAX_UNWINDERS; u++)
		if (is_for(w, m->file, u))
			note_program(w, u);
}

/* Appends mapping i, unless code in it is for user space. 0 or -errno. */
static int write_mapping(struct writer *w, uint32_t i)
{
	const struct process *process = w->what->process;
	struct process_mapping *m = &process->mappings[i];
	bool last = i + 1 == process->n;
	struct pieces p = {.w = w, .m = m, .end = m->file ? m->hi : last ? UINT64_MAX : m[1].lo};
	int r;

	note_awaited(w, m);
	if (!describe(w, m, &p.rest) || (!m->file && is_foreign(&p, m)))
		return 0;
	r = m->file ? append_file(&p, m) : append_anonymous(&p, m);
	if (!r && p.rest.lo < p.rest.hi)
		r = append(w, &p.rest);
	return r;
}

/* Sets the words of the first labeler that has some for the process. Without room for them its
 * samples have no labels for now. */
static void write_label(struct writer *w, struct map_chunk *head)
{
	uint64_t process = w->what->process->id, n;
	const uint32_t *words = NULL;
	uint32_t i = 0, unwinder = 0;

	for (; i < w->b->labelers.n && !words; i++) {
		unwinder = (uint32_t)w->b->labelers.at[i];
		words = claims_words(w->what->claims, process, unwinder, &n);
	}
	head->label = (struct slab_range){0};
	if (!words)
		return;
	if (slabs_place_words(w->b, process, unwinder, words, n, &head->label))
		w->p->lacks_table = true;
	else
		head->label.labeler = i - 1;
}

void chunks_place(struct bpf_sampler *b, struct published *p, const struct publication *what)
{
	static const struct marks none;
	struct writer w = {.b = b, .p = p, .what = what, .marks = &none};
	struct chunk_mapping ignored;

	for (uint32_t i = 0; i < what->process->n; i++)
		(void)describe(&w, &what->process->mappings[i], &ignored);
}

int chunks_write(struct bpf_sampler *b, struct published *p, const struct publication *what,
		 const struct marks *marks)
{
	struct map_chunk *head = &b->chunks.at[p->chunk];
	struct writer w = {.b = b, .p = p, .what = what, .marks = marks, .last = head, .n = 1};
	int r = 0;

	p->lacks_table = p->awaits_program = false;
	p->program = 0;
	for (uint32_t i = 0; !r && i < what->process->n; i++)
		r = write_mapping(&w, i);
	head->program = (uint16_t)p->program;
	head->follow = w.follow;
	write_label(&w, head);
	memcpy(head->claimed, w.claimed, sizeof(w.claimed));
	return r;
}
