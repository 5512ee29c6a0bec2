/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <stdlib.h>

#include "../table.h"

/* Is rbp saved in the red zone? */
static int is_below_sp(const struct code_state *s)
{
	return s->slot != CODE_SLOT_LOST && s->slot > s->depth;
}

/* What was saved is not there any more: the caller's rbp is in rbp, or not known. */
static void lose_slot(struct code_state *s)
{
	s->slot = s->intact ? 0 : CODE_SLOT_LOST;
	s->intact = 0;
}

void code_state_lose_red_zone(struct code_state *s)
{
	if (s->word < CODE_WORD_0 && !s->by_fp)
		s->word = s->word_copy = 0;
	if (s->fp_word < CODE_WORD_0 && !s->by_fp)
		s->fp_word = 0;
	if (is_below_sp(s))
		lose_slot(s);
}

int code_state_set_depth(struct code_state *s, int64_t bytes)
{
	if (bytes < 0 || bytes >= 8 * (int64_t)CODE_DEPTH_LOST)
		return -1;
	s->depth = (uint32_t)(bytes / 8);
	s->odd = (uint8_t)(bytes % 8);
	return 0;
}

/* How many bytes below the return address is what is `bytes` above sp? */
static int64_t below_return(const struct code_state *s, int64_t bytes)
{
	return 8 * (int64_t)s->depth + s->odd - bytes;
}

/* A word is so many bytes lower, seen from another place. */
static uint16_t shifted(uint16_t word, int64_t bytes)
{
	int64_t to = (int64_t)word - bytes / 8;

	return !word || bytes % 8 || to <= 0 || to > CODE_MAX_WORD ? 0 : (uint16_t)to;
}

/* The word that is so many bytes above sp, or rbp. */
static uint16_t word_at(int64_t bytes)
{
	return shifted(CODE_WORD_0, -bytes);
}

static int64_t bytes_of(uint16_t word)
{
	return 8 * ((int64_t)word - (int64_t)CODE_WORD_0);
}

/* The functions return what code_state_apply() returns. */

/* The words are then at another distance from sp. */
static int move_words(struct code_state *s, int64_t bytes)
{
	if (!s->by_fp) {
		s->word = shifted(s->word, bytes);
		s->fp_word = shifted(s->fp_word, bytes);
		s->fp_at = shifted(s->fp_at, bytes);
	}
	return code_state_is_known(s) ? 0 : -1;
}

static int move_sp(struct code_state *s, int64_t bytes)
{
	if (s->depth == CODE_DEPTH_LOST) /* stays lost, until rbp or a copy gives it back */
		return move_words(s, bytes);
	if (code_state_set_depth(s, below_return(s, bytes)))
		return -1;
	if (bytes > 0 && is_below_sp(s))
		lose_slot(s);
	return 0;
}

/* What rbp leads to stays, if the words can be found by it. */
static void anchor_at_fp(struct code_state *s)
{
	int64_t bytes = bytes_of(s->fp_at);

	if (!s->fp_at)
		return;
	s->word = shifted(s->word, bytes);
	s->fp_word = shifted(s->fp_word, bytes);
	s->fp_at = 0;
	s->by_fp = s->word || s->fp_word;
}

static int lose_sp(struct code_state *s)
{
	code_state_lose_red_zone(s);
	if (s->fp_at)
		anchor_at_fp(s);
	else if (!s->by_fp)
		s->word = s->fp_word = 0;
	s->depth = CODE_DEPTH_LOST;
	s->odd = 0;
	return code_state_is_known(s) ? 0 : -1;
}

static int push(struct code_state *s)
{
	int overwrites = is_below_sp(s) && s->slot <= s->depth + 1 + !!s->odd;

	if (s->word == CODE_WORD_0 - 1 && !s->by_fp)
		s->word = s->word_copy = 0;
	if (s->fp_word == CODE_WORD_0 - 1 && !s->by_fp)
		s->fp_word = 0;
	if (move_sp(s, -8))
		return -1;
	if (overwrites)
		lose_slot(s);
	return 0;
}

static int save_fp(struct code_state *s, int64_t bytes_above_sp)
{
	int64_t slot = below_return(s, bytes_above_sp);

	if (s->slot)
		return 0; /* a second copy, or of another value */
	if (s->depth == CODE_DEPTH_LOST) {
		if (!s->by_fp && word_at(bytes_above_sp))
			s->fp_word = word_at(bytes_above_sp);
		return 0;
	}
	if (slot % 8 || slot <= 0 || slot / 8 > (int64_t)DWARF_MAX_SLOT)
		return 0;
	s->slot = (uint32_t)(slot / 8);
	s->intact = 1;
	return 0;
}

static int push_fp(struct code_state *s)
{
	return push(s) || save_fp(s, 0) ? -1 : 0;
}

static int write_fp(struct code_state *s)
{
	if (s->depth == CODE_DEPTH_LOST && !code_state_has_copies(s))
		return -1;
	s->base = s->intact = 0;
	s->fp_at = 0;
	if (s->by_fp)
		s->word = s->fp_word = s->by_fp = 0;
	if (!s->slot)
		s->slot = CODE_SLOT_LOST; /* overwritten without being saved */
	return 0;
}

/* Is the caller's rbp in that word? */
static int is_fp_word(const struct code_state *s, int64_t bytes_above_sp)
{
	return s->fp_word && !s->by_fp && bytes_of(s->fp_word) == bytes_above_sp;
}

/* rbp comes back: from where it was saved, or it is another value. */
static int pop_fp(struct code_state *s)
{
	int saved = s->slot && s->slot != CODE_SLOT_LOST && s->slot == s->depth && !s->odd;
	int word = is_fp_word(s, 0);

	if (s->depth == CODE_DEPTH_LOST && !code_state_has_copies(s))
		return -1;
	if (saved) {
		s->slot = s->intact = s->base = 0;
		return move_sp(s, 8);
	}
	if (write_fp(s))
		return -1;
	if (word)
		s->slot = s->fp_word = 0;
	return move_sp(s, 8);
}

/* rbp is read from the stack without a pop. */
static int load_fp(struct code_state *s, int64_t bytes_above_sp)
{
	int64_t slot = below_return(s, bytes_above_sp);
	int word = is_fp_word(s, bytes_above_sp);

	if (write_fp(s))
		return -1;
	if (word)
		s->slot = 0;
	s->intact = s->slot && s->slot != CODE_SLOT_LOST && s->depth != CODE_DEPTH_LOST &&
		    slot == 8 * (int64_t)s->slot;
	return 0;
}

/* rbp leads to sp, though not to the return address. */
static int sp_from_low_fp(struct code_state *s, int64_t bytes)
{
	if (s->depth != CODE_DEPTH_LOST || bytes % 8 || (!s->by_fp && !s->fp_at))
		return -1;
	if (!s->by_fp)
		return move_sp(s, bytes_of(s->fp_at) + bytes);
	s->by_fp = 0;
	s->fp_at = CODE_WORD_0;
	return move_words(s, bytes);
}

static int sp_from_fp(struct code_state *s, int64_t bytes)
{
	if (!s->base)
		return sp_from_low_fp(s, bytes);
	s->depth = s->base - 1;
	s->odd = 0;
	return move_sp(s, bytes);
}

static int set_fp(struct code_state *s, int64_t bytes_above_sp)
{
	if (s->depth == CODE_DEPTH_LOST) {
		if (write_fp(s))
			return -1;
		s->fp_at = word_at(bytes_above_sp);
		return 0;
	}
	if (bytes_above_sp || s->odd)
		return write_fp(s);
	if (!s->slot || s->depth >= CODE_MAX_BASE)
		return -1;
	s->base = s->depth + 1;
	s->intact = 0;
	return 0;
}

/* ---- copies of sp ---- */

static void copy_sp(struct code_state *s, const struct insn *in)
{
	int64_t below = below_return(s, in->at) + 8;

	if (s->depth == CODE_DEPTH_LOST || below % 8 || below < 0 || below > 8 * CODE_MAX_COPY)
		return;
	s->reg = (uint8_t)(in->reg + 1);
	s->copy = (uint8_t)(below / 8);
}

static int sp_from_copy(struct code_state *s, uint32_t copy, int64_t bytes)
{
	s->depth = copy - 1;
	s->odd = 0;
	s->word = 0;
	if (!copy) {
		s->depth = 0;
		bytes += 8;
	}
	if (move_sp(s, bytes))
		return -1;
	if (is_below_sp(s))
		lose_slot(s);
	return 0;
}

/* Does the instruction access the word that has the copy? */
static int is_word(const struct code_state *s, const struct insn *in)
{
	return s->word && !s->by_fp && in->at == bytes_of(s->word);
}

/* Is it that word, read by rbp? */
static int is_word_by_fp(const struct code_state *s, const struct insn *in)
{
	int64_t at = s->by_fp ? 0 : bytes_of(s->fp_at);

	return s->word && (s->by_fp || s->fp_at) && in->at == bytes_of(s->word) - at;
}

/* A register is stored; is_copy: it is CFA - 8 * copy. */
static void save_copy(struct code_state *s, const struct insn *in, int is_copy, uint32_t copy)
{
	if (is_copy && copy <= CODE_MAX_COPY && s->depth == CODE_DEPTH_LOST && !s->by_fp &&
	    word_at(in->at)) {
		s->word = word_at(in->at);
		s->word_copy = (uint8_t)copy;
	} else if (is_word(s, in)) {
		s->word = 0;
	}
	if (is_fp_word(s, in->at) && (in->copy == INSN_COPY_SAVE || s->slot))
		s->fp_word = 0;
}

/* What is loaded into the register is the copy. */
static void load_copy(struct code_state *s, const struct code_state *was, const struct insn *in)
{
	s->reg = (uint8_t)(in->reg + 1);
	s->copy = was->word_copy;
}

/* The caller's rbp is read by a copy. */
static void load_fp_by_copy(struct code_state *s, const struct insn *in, uint32_t copy)
{
	int64_t slot = (int64_t)copy - 1 - in->at / 8;

	s->intact = s->slot && s->slot != CODE_SLOT_LOST && in->at % 8 == 0 && slot == s->slot;
}

/* What the instruction does with copies, after its other effects on `was`. 0; -1: not known. 1:
 * nothing of that kind. */
static int apply_copy(struct code_state *s, const struct code_state *was, const struct insn *in)
{
	int is_reg = was->reg == in->reg + 1;

	switch (in->copy) {
	case INSN_COPY_TO_SP:
		return is_reg ? sp_from_copy(s, was->copy, in->at) : 1;
	case INSN_COPY_LOAD_SP:
		return is_word(was, in) ? sp_from_copy(s, was->word_copy, 0) : 1;
	case INSN_COPY_LOAD_FP:
		if (!is_word(was, in) || was->word_copy > CODE_MAX_BASE)
			return 1;
		if (write_fp(s))
			return -1;
		s->base = was->word_copy;
		return 0;
	case INSN_COPY_SET_FP:
		if (!is_reg || !was->copy || !was->slot)
			return 1;
		if (write_fp(s))
			return -1;
		s->base = was->copy;
		return 0;
	case INSN_COPY_TO_FP:
		if (!is_reg)
			return 1;
		if (write_fp(s))
			return -1;
		load_fp_by_copy(s, in, was->copy);
		return 0;
	default:
		return 1;
	}
}

/* Words stand for a depth that is lost. */
static void tidy(struct code_state *s)
{
	if (s->depth != CODE_DEPTH_LOST)
		s->word = s->fp_word = s->fp_at = s->by_fp = 0;
	if (!s->word)
		s->word_copy = 0;
	if (!s->word && !s->fp_word)
		s->by_fp = 0;
}

static void change_copies(struct code_state *s, const struct code_state *was, const struct insn *in)
{
	if (s->reg && in->written >> (s->reg - 1) & 1)
		s->reg = s->copy = 0;
	if (in->copy == INSN_COPY_SP)
		copy_sp(s, in);
	else if (in->copy == INSN_COPY_SAVE)
		save_copy(s, in, was->reg == in->reg + 1, was->copy);
	else if (in->copy == INSN_COPY_SAVE_FP)
		save_copy(s, in, was->base != 0, was->base);
	if (in->copy == INSN_COPY_PUSH && is_word(was, in) && s->depth == CODE_DEPTH_LOST) {
		s->word = CODE_WORD_0;
		s->word_copy = was->word_copy;
	}
	if (in->copy == INSN_COPY_PUSH_REG && was->reg == in->reg + 1 && !s->word && !s->by_fp) {
		s->word = CODE_WORD_0;
		s->word_copy = was->copy;
	}
	if ((in->copy == INSN_COPY_LOAD && is_word(was, in)) ||
	    (in->copy == INSN_COPY_POP_REG && is_word(was, in)) ||
	    (in->copy == INSN_COPY_LOAD_BY_FP && is_word_by_fp(was, in)))
		load_copy(s, was, in);
	tidy(s);
}

static int apply(struct code_state *s, const struct insn *in)
{
	switch (in->effect) {
	case INSN_PUSH:
		return push(s);
	case INSN_PUSH_FP:
		return push_fp(s);
	case INSN_POP:
		return move_sp(s, 8);
	case INSN_POP_FP:
		return pop_fp(s);
	case INSN_ADD_SP:
		return move_sp(s, in->value);
	case INSN_SAVE_FP:
		return save_fp(s, in->value);
	case INSN_SET_FP:
		return set_fp(s, in->value);
	case INSN_SP_FROM_FP:
		return sp_from_fp(s, in->value);
	case INSN_LEAVE:
		return sp_from_fp(s, 0) || pop_fp(s) ? -1 : 0;
	case INSN_LOSE_SP:
		return lose_sp(s);
	case INSN_WRITE_SP:
		return -1;
	case INSN_WRITE_FP:
		return write_fp(s);
	case INSN_LOAD_FP:
		return load_fp(s, in->value);
	default:
		return 0;
	}
}

int code_state_apply(struct code_state *s, const struct insn *in)
{
	struct code_state was = *s;
	int ret = in->copy ? apply_copy(s, &was, in) : 1;

	if (ret == 1)
		ret = apply(s, in);
	if (!ret)
		change_copies(s, &was, in);
	return ret || !code_state_is_known(s) ? -1 : 0;
}

/* Words and copies that only one path has are lost. */
static void join_copies(struct code_state *s, const struct code_state *with)
{
	struct code_state other = *with;

	if (s->reg != other.reg || s->copy != other.copy)
		s->reg = s->copy = 0;
	if (s->by_fp || other.by_fp || (s->fp_at && other.fp_at && s->fp_at != other.fp_at)) {
		anchor_at_fp(s);
		anchor_at_fp(&other);
	}
	if (s->by_fp != other.by_fp)
		s->word = s->fp_word = 0;
	if (s->word != other.word || s->word_copy != other.word_copy)
		s->word = 0;
	if (s->fp_word != other.fp_word)
		s->fp_word = 0;
	if (s->fp_at != other.fp_at)
		s->fp_at = 0;
	tidy(s);
}

int code_state_join(struct code_state *s, const struct code_state *other)
{
	if (s->slot != other->slot) /* rbp may have the caller's value on both paths */
		s->slot = (!s->slot || s->intact) && (!other->slot || other->intact)
				  ? 0
				  : CODE_SLOT_LOST;
	s->intact &= s->slot == other->slot && other->intact;
	if (s->base != other->base)
		s->base = 0;
	if (s->depth != other->depth || s->odd != other->odd) {
		s->depth = CODE_DEPTH_LOST;
		s->odd = 0;
	}
	join_copies(s, other);
	return code_state_is_known(s) ? 0 : -1;
}

/* ---- packed ---- */

#define MAX_STATES (1u << 16)

static uint32_t hash(const struct code_state *s)
{
	uint64_t v = s->depth | (uint64_t)s->slot << 13 | (uint64_t)s->base << 18 |
		     (uint64_t)s->reg << 24 | (uint64_t)s->copy << 29 | (uint64_t)s->word << 37 |
		     (uint64_t)s->word_copy << 50 | (uint64_t)s->intact << 58;
	uint64_t w = s->odd | (uint64_t)s->by_fp << 3 | (uint64_t)s->fp_word << 4 |
		     (uint64_t)s->fp_at << 20;

	return (uint32_t)((v * 0x9e3779b97f4a7c15ull + w * 0xc2b2ae3d27d4eb4full) >> 48);
}

static int equal(const struct code_state *a, const struct code_state *b)
{
	return a->depth == b->depth && a->slot == b->slot && a->intact == b->intact &&
	       a->base == b->base && a->reg == b->reg && a->copy == b->copy && a->word == b->word &&
	       a->word_copy == b->word_copy && a->odd == b->odd && a->fp_word == b->fp_word &&
	       a->fp_at == b->fp_at && a->by_fp == b->by_fp;
}

uint32_t code_states_pack(struct code_states *all, const struct code_state *s)
{
	struct code_state plain = *s;
	uint32_t i = hash(s);

	if (!all->p)
		all->p = calloc(MAX_STATES, sizeof(*all->p));
	for (; all->p; i = (i + 1) % MAX_STATES) {
		if (equal(&all->p[i], s))
			return CODE_BASE_COPIES << 18 | i;
		if (!code_state_is_plain(&all->p[i]))
			continue;
		if (all->n >= MAX_STATES / 2)
			break;
		all->n++;
		all->p[i] = *s;
		return CODE_BASE_COPIES << 18 | i;
	}
	if (plain.odd)
		plain.depth = CODE_DEPTH_LOST;
	plain.reg = plain.copy = plain.word_copy = plain.odd = plain.by_fp = 0;
	plain.word = plain.fp_word = plain.fp_at = 0;
	return code_state_pack(all, &plain);
}

void code_states_fini(struct code_states *all)
{
	free(all->p);
	all->p = NULL;
	all->n = 0;
}
