/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Continuations of a walk that stopped in native code. User space can unwind that over the stack
 * copy, but no frames of languages. So what the walk has found is sent, if it came to claimed code.
 * The stack above is searched for return addresses in claimed code, and a walk is made from each.
 * Some are of callers of the frame where the walk stopped, others remain of calls that have ended.
 * User space uses a continuation if its own walk comes to where that begins.
 */
#ifndef BPF_CONTINUE_H
#define BPF_CONTINUE_H

#include <fusee/unwinder.bpf.h>

#include "chunks.h"
#include "language.h"
#include "sample.h"

#define CONTINUE_TRIES 24u    /* walks of a tick, which together have SAMPLER_STEPS */
#define CONTINUE_COMPLETE 3u  /* walks to the outermost frame, after which no more are made */
#define CONTINUE_PARTS 8u     /* that are sent of a tick */
#define CONTINUE_WORDS 128u   /* of the stack that are read at once */
#define CONTINUE_BYTES 61440u /* of the stack that are searched: as far as a stack copy goes */
#define CONTINUE_LOOKS 160u   /* reads, and words that may be return addresses, of a search */

/* The index of the first word from search.i on that may be a return address in claimed code, or
 * CONTINUE_WORDS. A global function, as are the next two, so that the verifier checks it once. */
__attribute__((noinline)) int sampler_claimed_word(__u32 unused)
{
	struct scratch *s = scratch();
	struct map_chunk *head = s ? chunk_at(s->chunk) : 0;

	__asm__ volatile("" : "+r"(unused));
	if (!s || !head)
		return CONTINUE_WORDS;
	for (__u32 i = 0; i < CONTINUE_WORDS; i++) {
		__u64 at = s->record.stack.words[i] - 1;

		/* read anew, since the verifier would follow each of its values apart */
		if (i < READ_ONCE(s->search.i))
			continue;
		for (__u32 r = 0; r < CLAIMED_RANGES; r++)
			if (at - head->claimed[r].lo < head->claimed[r].bytes)
				return i;
	}
	return CONTINUE_WORDS;
}

/* Is the instruction before this address a call, by its last 7 bytes? */
FUSEE_FN int is_behind_any_call(const __u8 c[8])
{
	return c[2] == 0xe8 || (c[5] == 0xff && ((c[6] & 0xf8) == 0xd0 || (c[6] & 0xf8) == 0x10)) ||
	       (c[4] == 0xff && ((c[5] & 0xf8) == 0x50 || c[5] == 0x14)) ||
	       (c[3] == 0xff && c[4] == 0x54) ||
	       (c[1] == 0xff && ((c[2] & 0xf8) == 0x90 || c[2] == 0x15)) ||
	       (c[0] == 0xff && c[1] == 0x94);
}

/* 1: it is a return address in code of a file that is claimed. */
__attribute__((noinline)) int sampler_is_return(__u64 pc)
{
	struct scratch *s = scratch();
	struct map_chunk *c = s ? chunk_of(s->chunk, pc - 1) : 0;
	struct chunk_mapping *m = c ? mapping_of(c, pc - 1) : 0;
	__u8 code[8] = {0};

	__asm__ volatile("" : "+r"(pc));
	if (!s || !m || !m->file || !m->unwinder || m->unwinder == NO_PROGRAM ||
	    READ_ONCE(m->changed) > s->as_of)
		return 0;
	return !fusee_bpf_probe_read_user(code, 7, (const void *)(pc - 7)) &&
	       is_behind_any_call(code);
}

/* Reads the words at search.at. An absent page, which a large frame may have, is passed. 0 or -1.
 */
FUSEE_FN int read_block(struct scratch *s)
{
	if (!fusee_bpf_probe_read_user(s->record.stack.words, 8 * CONTINUE_WORDS,
				       (const void *)s->search.at))
		return 0;
	s->search.at |= RECORD_PAGE - 8 * CONTINUE_WORDS;
	return -1;
}

/* Searches on. 1: search.pc and search.sp are the next caller that may be in claimed code. The
 * record's words are overwritten. */
__attribute__((noinline)) int sampler_search(__u32 unused)
{
	struct scratch *s = scratch();
	__u32 i;

	__asm__ volatile("" : "+r"(unused));
	if (!s)
		return 0;
	if (read_block(s))
		s->search.i = CONTINUE_WORDS;
	for (__u32 look = 0; look < CONTINUE_LOOKS; look++) {
		if (READ_ONCE(s->search.i) >= CONTINUE_WORDS) {
			s->search.at += 8 * CONTINUE_WORDS;
			if (s->search.at - s->regs.rsp >= CONTINUE_BYTES)
				return 0;
			s->search.i = read_block(s) ? CONTINUE_WORDS : 0;
		}
		i = (__u32)sampler_claimed_word(0);
		s->search.i = i + 1;
		if (i >= CONTINUE_WORDS)
			continue;
		__asm__ volatile("" : "+r"(i)); /* else Linux 5.10 does not see its bound */
		i &= CONTINUE_WORDS - 1;
		s->search.pc = s->record.stack.words[i];
		s->search.sp = s->search.at + 8 * i + 8;
		if (sampler_is_return(s->search.pc))
			return 1;
	}
	return 0;
}

/* Has a walk stopped in native code, so that it may go on in a caller? */
FUSEE_FN int is_interrupted(const struct scratch *s, __u32 result)
{
	struct map_chunk *head;

	if (s->stop.unwinder || (result != TICK_UNKNOWN_CODE && result != TICK_STOPPED &&
				 result != TICK_CHANGED && result != TICK_TABLE_ABSENT))
		return 0;
	head = chunk_at(s->chunk);
	return head && head->claimed[0].bytes && !(s->version & 1) &&
	       s->version == version_of(s->chunk, s->record.tick.head.process);
}

/* Is what the walk has found a part of the stack, to be sent? It has come to claimed code, and a
 * walk that began at a word of the stack has come to a caller. */
FUSEE_FN int is_part(const struct scratch *s, const struct fusee_unwind *u, __u32 result)
{
	__u8 code[8] = {0};

	if (!s->search.met || s->deep.outer.frames || s->search.number >= CONTINUE_PARTS ||
	    s->search.before <= s->record.stack.nkernel || !is_interrupted(s, result))
		return 0;
	return !s->search.active ||
	       (!fusee_bpf_probe_read_user(code, 7, (const void *)(u->pc - 7)) &&
		is_behind_any_call(code));
}

/* The search begins anew where the walk has stopped, and further walks with what the languages'
 * steps know there. If the walk began at a word of the stack, the words above that are searched
 * later, too: it may remain of a call that has ended. */
FUSEE_FN void search_from(struct scratch *s, const struct fusee_unwind *u, struct kept *k)
{
	if (s->search.active && !k->others) {
		k->other = k->now;
		k->other.at = s->search.at;
		k->other.i = s->search.i;
		k->others = 1;
	}
	s->search.at = u->sp & ~(8ull * CONTINUE_WORDS - 1);
	s->search.i = u->sp / 8 % CONTINUE_WORDS;
	k->complete = 0;
	k->now.after = s->search.number;
	k->now.slot = s->slot;
	k->now.begun = s->begun;
	for (__u32 i = 0; i < 8; i++)
		k->now.words[i] = u->scratch[i];
}

/* A walk from the thread's registers has stopped. */
FUSEE_FN void begin_search(struct scratch *s, const struct fusee_unwind *u, struct kept *k,
			   __u32 result)
{
	s->search.pc = s->regs.rip;
	s->search.sp = s->regs.rsp;
	s->search.number = s->search.rounds = 0;
	k->result = result;
	k->others = k->tries = 0;
	k->flags = s->record.tick.head.flags;
	k->period = s->record.tick.period;
	s->search.began = bpf_ktime_get_ns();
	search_from(s, u, k);
}

/* The walk goes on in the caller that the search has found. */
FUSEE_FN void continue_walk(struct fusee_unwind *u, struct scratch *s, const struct kept *k)
{
	struct emissions *e = emissions();

	u->flags = FUSEE_FP_LOST | (u->flags & FUSEE_FOLLOW);
	u->pc = s->search.pc;
	u->sp = s->search.sp;
	u->fp = u->valid_regs = 0;
	u->error = u->npushed = 0;
	u->absent = 0;
	if (e)
		e->n = e->at = 0;
	s->begun = k->now.begun;
	language_notes(u, s);
	for (__u32 i = 0; i < 8; i++)
		u->scratch[i] = k->now.words[i];
	s->record.stack.nkernel = 0;
	s->at = 0;
	s->next.guessed = s->claimed.pushed = s->idle = s->has_cfa = 0;
	s->claimed.machine = 0;
	s->replaced.next = 0;
	s->deep.outer.frames = s->deep.outer.words = s->deep.rounds = 0;
	s->search.met = 0;
	s->search.active = 1;
}

/* Finds the next caller in claimed code. 0; -1: there is none. */
FUSEE_FN int search_on(struct scratch *s, struct kept *k, __u32 tries)
{
	if (k->tries >= tries || k->complete >= CONTINUE_COMPLETE ||
	    s->search.number >= CONTINUE_PARTS || s->slot != k->now.slot)
		return -1;
	k->tries++;
	return sampler_search(0) ? 0 : -1;
}

/* Finds the next caller in claimed code, and prepares the walk from there. 0; -1: there is none. */
FUSEE_FN int next_continuation(struct scratch *s, struct fusee_unwind *u, struct kept *k)
{
	if (search_on(s, k, k->others ? CONTINUE_TRIES / 2 : CONTINUE_TRIES)) {
		if (!k->others)
			return -1;
		k->others = 0;
		k->now = k->other;
		s->search.at = k->now.at;
		s->search.i = k->now.i;
		k->complete = 0;
		if (search_on(s, k, CONTINUE_TRIES))
			return -1;
	}
	continue_walk(u, s, k);
	return 0;
}

/* What becomes of a walk that has ended. */
enum continued {
	CONTINUED_NOT,      /* it is no continuation, and none is to be made */
	CONTINUED_DROPPED,  /* it is not sent */
	CONTINUED_PART,     /* it is sent, and the search goes on where it has stopped */
	CONTINUED_COMPLETE, /* it is sent, and the search goes on */
};

/* Judges a walk by its enum tick_result. Global functions, as are the next. */
__attribute__((noinline)) int sampler_judge(__u32 result)
{
	struct fusee_unwind *u = fusee_current();
	struct scratch *s = scratch();
	struct kept *k = kept();

	__asm__ volatile("" : "+r"(result));
	if (!u || !s || !k)
		return CONTINUED_NOT;
	if (!s->search.active) {
		if (!is_interrupted(s, result))
			return CONTINUED_NOT;
		begin_search(s, u, k, result);
	}
	if (result == TICK_UNWOUND) /* its stack must be complete */
		return s->record.tick.head.flags == k->flags ? CONTINUED_COMPLETE
							     : CONTINUED_DROPPED;
	return is_part(s, u, result) ? CONTINUED_PART : CONTINUED_DROPPED;
}

/* Prepares the record of a walk that is sent. Returns its size; 0: it is too large. */
__attribute__((noinline)) int sampler_continuation(__u32 how)
{
	struct fusee_unwind *u = fusee_current();
	struct scratch *s = scratch();
	struct kept *k = kept();
	struct record_stack *r;
	__u32 at;

	__asm__ volatile("" : "+r"(how));
	if (!u || !s || !k)
		return 0;
	r = &s->record.stack;
	if (how == CONTINUED_PART) {
		at = s->search.before < s->at ? s->search.before : s->at;
		__asm__ volatile("" : "+r"(at));
		if (at > RECORD_INNER_WORDS)
			return 0;
		r->words[at] = u->pc;
		r->words[at + 1] = u->sp;
		s->at = at + 2;
		r->tick.head.flags |= RECORD_PART;
	} else {
		outer_end(s);
	}
	r->version = s->version;
	r->begin.pc = s->search.pc;
	r->begin.sp = s->search.sp;
	r->tick.part.number = s->search.number + 1;
	r->tick.part.after = k->now.after;
	return RECORD_STACK_HEAD + 8 * s->at;
}

/* Goes on after a walk of which this has become. 0: the next is to be made; -1: there is none. */
__attribute__((noinline)) int sampler_go_on(__u32 how)
{
	struct fusee_unwind *u = fusee_current();
	struct scratch *s = scratch();
	struct kept *k = kept();

	__asm__ volatile("" : "+r"(how));
	if (!u || !s || !k)
		return -1;
	if (how == CONTINUED_NOT && !s->search.active)
		return -1;
	if (how == CONTINUED_COMPLETE)
		k->complete++;
	if (how == CONTINUED_PART)
		search_from(s, u, k);
	s->search.active = 0;
	s->stop.unwinder = s->stop.reason = 0;
	s->record.tick.head.flags = k->flags;
	s->record.tick.period = k->period;
	return how == CONTINUED_NOT ? -1 : next_continuation(s, u, k);
}

/* Sends the continuation. 0 or -1. */
FUSEE_FN int send_continuation(struct sampler_context *c, struct scratch *s, enum continued how)
{
	__u32 size = (__u32)sampler_continuation(how);

	if (!size)
		return -1;
	__asm__ volatile("" : "+r"(size)); /* a check of its own, which Linux 5.10 understands */
	if (size > sizeof(s->record.stack))
		return -1;
	if (output(c, s, RECORD_CONTINUATION, size))
		return -1;
	s->copies.bytes += size;
	s->search.number++;
	count(TICK_CONTINUED);
	return 0;
}
#endif
