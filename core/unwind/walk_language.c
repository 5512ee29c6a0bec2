/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/walk_language.h"

#include <stdlib.h>
#include <string.h>

#include "loss/loss.h"
#include "unwind/unwinders.h"

#define MOST_EMITTED (1u << 18)
#define MAX_IDLE 64u /* calls of a step in a row that push nothing */

void walk_languages_begin(struct walk_languages *l, struct walker *w, struct process *process,
			  struct walk *out)
{
	l->claims = w->claims;
	l->process = process;
	l->unwinders = w->unwinders;
	l->out = out;
	memset(l->scratch, 0, sizeof(l->scratch));
	l->current = 0;
	l->pushed = l->ended = false;
	l->reason = NULL;
}

struct walk_languages *walk_languages_new(void)
{
	return calloc(1, sizeof(struct walk_languages));
}

void walk_languages_free(struct walk_languages *l)
{
	if (!l)
		return;
	hashmap_fini(&l->emitted);
	free(l);
}

/* ---- emissions ---- */

void walk_languages_forget(struct walk_languages *l)
{
	if (l)
		hashmap_fini(&l->emitted);
}

/* Two keys of 64 bits have the same number about never. */
static uint64_t number_of(const struct walk_languages *l, uint32_t kind, uint64_t key)
{
	return fusee_mix(fusee_mix(fusee_mix(l->process->id, l->current), kind), key);
}

static int was_emitted(struct fusee_native *n, __u32 kind, __u64 key)
{
	const struct walk_languages *l = ((struct walk_context *)n->arg)->languages;

	return hashmap_get(&l->emitted, number_of(l, kind, key)) != NULL;
}

static int emit(struct fusee_native *n, __u32 kind, __u64 key, const void *bytes, __u32 len)
{
	struct walk_languages *l = ((struct walk_context *)n->arg)->languages;
	const struct fusee_emission e = {.size = sizeof(e),
					 .kind = kind,
					 .key = key,
					 .time_ns = n->u.time_ns,
					 .bytes = {bytes, len}};

	if (claims_record(l->claims, l->process, l->current, &e) < 0)
		return -1;
	if (l->emitted.n >= MOST_EMITTED) /* record() may have an emission several times */
		hashmap_fini(&l->emitted);
	return hashmap_put(&l->emitted, number_of(l, kind, key), l) ? -1 : 0;
}

/* ---- steps ---- */

/* From now on u->scratch is this unwinder's. */
static void switch_to(struct walk_languages *l, struct fusee_unwind *u, uint32_t unwinder)
{
	if (l->current == unwinder)
		return;
	memcpy(l->scratch[l->current], u->scratch, sizeof(u->scratch));
	memcpy(u->scratch, l->scratch[unwinder], sizeof(u->scratch));
	l->current = unwinder;
}

/* Adds the frame that the step pushed. false: there is no room. */
static bool add_pushed(struct walk_languages *l, struct fusee_unwind *u)
{
	bool four = u->pushed_words > 2;
	const struct walk_frame frame = {
		.kind = FRAME_PUSHED,
		.addr = u->pushed[0],
		.extra = {u->pushed[1], four ? u->pushed[2] : 0, four ? u->pushed[3] : 0},
		.process = l->process->id,
		.generation = l->current,
		.flags = u->push_flags & 0xff};

	if (!u->npushed)
		return true;
	if (!walk_put(l->out, &frame))
		return false;
	u->npushed = 0;
	u->stored++;
	l->pushed |= !(u->push_flags & FUSEE_PUSH_THREAD);
	claims_expect_pushed(l->claims, l->process, l->current, u->time_ns);
	return true;
}

/* The frames of languages end here; the machine's go on. */
static enum language_turn give_up(struct walk_languages *l, const char *reason)
{
	l->ended = true;
	l->reason = reason;
	return LANGUAGE_NATIVE;
}

static enum language_turn turns(struct walk_languages *l, struct fusee_unwind *u,
				const struct fusee_unwinder_ops *ops)
{
	uint64_t pc = u->pc, sp = u->sp, fp = u->fp;
	uint32_t idle = 0;
	int next;

	do {
		uint32_t before = u->stored;

		u->error = 0;
		next = ops->native_step(u);
		if (u->flags & FUSEE_OMIT_CALLEE)
			walk_omit_machine(l->out);
		u->flags &= ~(uint32_t)FUSEE_OMIT_CALLEE;
		if (!add_pushed(l, u))
			return LANGUAGE_FULL;
		idle = u->stored > before ? 0 : idle + 1;
	} while (next == FUSEE_AGAIN && idle < MAX_IDLE);
	if (next == FUSEE_AGAIN)
		return give_up(l, loss_text(LOSS_ENDLESS));
	if (next == FUSEE_STOP)
		return u->error ? give_up(l, unwinder_reason(ops, u->error)) : LANGUAGE_END;
	if (next == FUSEE_NEXT_OMIT) {
		l->pushed |= !(u->push_flags & FUSEE_PUSH_THREAD);
		next = FUSEE_NEXT;
	}
	if (next == FUSEE_NEXT && u->sp > sp)
		return LANGUAGE_NEXT;
	if (next == FUSEE_NEXT) {
		u->pc = pc;
		u->sp = sp;
		u->fp = fp;
		return give_up(l, loss_text(LOSS_BACKWARDS));
	}
	if (next == FUSEE_NATIVE_TOO)
		l->pushed = false;
	return LANGUAGE_NATIVE;
}

/* ---- claims ---- */

/* The claim that holds a frame. */
struct language_claim {
	uint32_t unwinder;
	uint64_t lo, arg; /* lo: runtime address */
	uint64_t flags;   /* enum fusee_claim_flags */
};

/* Finds the claim of code of a file, of the unwinder that comes first. */
static bool claim_of_file(const struct process_mapping *m, uint64_t vaddr,
			  struct language_claim *to)
{
	for (uint32_t u = 0; m->file && m->file->claimed && u < FILES_MAX_UNWINDERS; u++) {
		const struct inspection_slab *slab = m->file->slabs[u];

		for (uint32_t i = 0; slab && i < slab->nclaims; i++)
			if (vaddr >= slab->claims[i].lo && vaddr < slab->claims[i].hi) {
				*to = (struct language_claim){u, slab->claims[i].lo + m->bias,
							      slab->claims[i].arg,
							      slab->claims[i].flags};
				return true;
			}
	}
	return false;
}

void walk_find_cfa(const struct walker *w, struct fusee_native *n, const struct process_mapping *m)
{
	const struct process *process = ((struct walk_context *)n->arg)->process;
	const struct fusee_unwind before = n->u;
	uint64_t cfa = 0;

	for (uint32_t i = 0; !cfa && i < w->unwinders->n && i < FILES_MAX_UNWINDERS; i++) {
		const struct fusee_unwinder_ops *ops = w->unwinders->instances[i]->descriptor->ops;
		const struct inspection_slab *slab = unwinder_table(process, i, ops, m);

		if (!slab || !ops->native_step || !(ops->flags & FUSEE_UNWINDER_NATIVE))
			continue;
		n->slab = slab->words;
		n->u.slab_words = slab->n;
		n->u.flags |= FUSEE_FOLLOW | FUSEE_CFA_ONLY;
		n->u.cfa = 0;
		ops->native_step(&n->u);
		cfa = n->u.cfa;
		n->u = before;
	}
	n->u.cfa = cfa;
}

/* The turn of this claim's unwinder. */
static enum language_turn turn_of(struct walker *w, struct fusee_native *n,
				  const struct process_mapping *m,
				  const struct language_claim *claim)
{
	struct walk_languages *l = ((struct walk_context *)n->arg)->languages;
	const struct fusee_unwinder_ops *ops =
		w->unwinders->instances[claim->unwinder]->descriptor->ops;
	const struct inspection_slab *slab = unwinder_table(l->process, claim->unwinder, ops, m);
	uint64_t words = 0;
	enum language_turn r;

	if (l->ended || !ops->native_step)
		return LANGUAGE_NATIVE;
	switch_to(l, &n->u, claim->unwinder);
	if (claim->flags & FUSEE_CLAIM_REGISTERS)
		walk_find_cfa(w, n, m);
	n->u.caller_regs = 0;
	n->u.claim_lo = claim->lo;
	n->u.claim_arg = claim->arg;
	n->u.slab_words = slab ? slab->n : 0;
	n->slab = slab ? slab->words : NULL;
	n->words = claims_words(w->claims, n->u.process, claim->unwinder, &words);
	n->u.words = n->words ? words : 0;
	n->emitted = was_emitted;
	n->emit = emit;
	r = turns(l, &n->u, ops);
	n->emitted = NULL;
	n->emit = NULL;
	return r;
}

/* Over a stack copy: adds the frames that this claim's step pushes without reading anything. */
static enum language_turn turn_over_copy(struct walker *w, struct fusee_native *n,
					 const struct language_claim *claim, struct walk *out)
{
	const struct fusee_unwinder_ops *ops =
		w->unwinders->instances[claim->unwinder]->descriptor->ops;
	struct walk_context *context = n->arg;
	struct walk_languages alone = {.current = 0};
	struct fusee_native blind = {.u = n->u};
	enum language_turn turn;

	if (!ops->native_step)
		return LANGUAGE_NATIVE;
	walk_languages_begin(&alone, w, context->process, out);
	alone.current = claim->unwinder;
	blind.u.claim_lo = claim->lo;
	blind.u.claim_arg = claim->arg;
	blind.u.slab_words = blind.u.words = 0;
	turn = turns(&alone, &blind.u, ops);
	n->u.stored = blind.u.stored;
	return turn == LANGUAGE_FULL ? turn : LANGUAGE_NATIVE;
}

enum language_turn walk_language_turn(struct walker *w, struct fusee_native *n,
				      const struct process_mapping *m, const struct claim *claim,
				      struct walk *out)
{
	const struct walk_languages *l = ((struct walk_context *)n->arg)->languages;
	struct language_claim c;
	uint64_t at = n->u.flags & FUSEE_PC_EXACT ? n->u.offset : n->u.offset - 1;

	if (claim && claim->flags & FUSEE_CLAIM_STEP)
		c = (struct language_claim){claim->unwinder, claim->lo, claim->arg, claim->flags};
	else if (!claim_of_file(m, at, &c))
		return LANGUAGE_NATIVE;
	else if (!l && w->claims && c.flags & FUSEE_CLAIM_READS_NOTHING)
		return turn_over_copy(w, n, &c, out);
	else
		out->passed |= !l;
	return l ? turn_of(w, n, m, &c) : LANGUAGE_NATIVE;
}
