/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Continuations of a walk that stopped in native code, before it came to code of a language. User
 * space can unwind native code over the stack copy, but not frames of languages. So the stack above
 * is searched for return addresses in claimed code, and a walk is made from each: a continuation.
 * Most of these addresses are of callers of the frame where the walk stopped, others remain of
 * calls that have ended. User space uses the continuation whose begin its own walk comes to.
 */
#ifndef BPF_CONTINUE_H
#define BPF_CONTINUE_H

#include <fusee/unwinder.bpf.h>

#include "chunks.h"
#include "language.h"
#include "sample.h"

#define CONTINUE_TRIES 24u    /* walks of a tick, which together have SAMPLER_STEPS */
#define CONTINUE_SENT 3u      /* of them are sent */
#define CONTINUE_WORDS 128u   /* of the stack that are read at once */
#define CONTINUE_BYTES 61440u /* of the stack that are searched: as far as a stack copy goes */
#define CONTINUE_LOOKS 160u   /* reads, and words that may be return addresses, of a search */

/* The index of the first word from `from` on that may be a return address in claimed code, or
 * CONTINUE_WORDS. A global function, as are the next two, so that the verifier checks it once. */
__attribute__((noinline)) int sampler_claimed_word(__u32 from)
{
	struct scratch *s = scratch();
	struct map_chunk *head = s ? chunk_at(s->chunk) : 0;

	__asm__ volatile("" : "+r"(from));
	if (!s || !head)
		return CONTINUE_WORDS;
	for (__u32 i = 0; i < CONTINUE_WORDS; i++) {
		__u64 at = s->record.stack.words[i] - 1;

		if (i < from)
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
	i = read_block(s) ? CONTINUE_WORDS : s->search.i;
	for (__u32 look = 0; look < CONTINUE_LOOKS; look++) {
		if (i >= CONTINUE_WORDS) {
			s->search.at += 8 * CONTINUE_WORDS;
			if (s->search.at - s->regs.rsp >= CONTINUE_BYTES)
				return 0;
			i = read_block(s) ? CONTINUE_WORDS : 0;
		}
		if (i >= CONTINUE_WORDS)
			continue;
		i = (__u32)sampler_claimed_word(i);
		if (i >= CONTINUE_WORDS)
			continue;
		s->search.pc = s->record.stack.words[i];
		s->search.sp = s->search.at + 8 * i + 8;
		i++;
		if (sampler_is_return(s->search.pc)) {
			s->search.i = i;
			return 1;
		}
	}
	return 0;
}

/* A walk has stopped: may a continuation be useful? */
FUSEE_FN int may_continue(const struct scratch *s, __u32 result)
{
	if (s->search.met || s->stop.unwinder || s->search.tries >= CONTINUE_TRIES ||
	    s->search.sent >= CONTINUE_SENT)
		return 0;
	if (result != TICK_UNKNOWN_CODE && result != TICK_STOPPED && result != TICK_CHANGED &&
	    result != TICK_TABLE_ABSENT)
		return 0;
	return !(s->version & 1) && s->version == version_of(s->chunk, s->record.tick.head.process);
}

/* The walk goes on in the caller that the search has found. */
FUSEE_FN void continue_walk(struct fusee_unwind *u, struct scratch *s)
{
	u->flags = FUSEE_FP_LOST | (u->flags & FUSEE_FOLLOW);
	u->pc = s->search.pc;
	u->sp = s->search.sp;
	u->fp = u->valid_regs = 0;
	u->error = 0;
	u->absent = 0;
	language_begin(u, s);
	s->record.stack.nkernel = 0;
	s->at = 0;
	s->next.guessed = s->claimed.pushed = s->idle = s->has_cfa = 0;
	s->claimed.machine = 0;
	s->replaced.next = 0;
	s->deep.outer.frames = s->deep.outer.words = s->deep.rounds = 0;
}

/* Finds the next caller in claimed code, and prepares the walk from there. 0; -1: there is none. */
FUSEE_FN int begin_continuation(struct scratch *s, __u32 result)
{
	struct fusee_unwind *u = fusee_current();

	if (!u)
		return -1;
	if (!s->search.tries) {
		s->search.at = u->sp & ~(8ull * CONTINUE_WORDS - 1);
		s->search.i = u->sp / 8 % CONTINUE_WORDS;
		s->search.rounds = 0;
		s->search.result = result;
		s->search.flags = s->record.tick.head.flags;
		s->search.began = bpf_ktime_get_ns();
	}
	s->search.tries++;
	if (!sampler_search(0))
		return -1;
	continue_walk(u, s);
	s->search.active = 1;
	return 0;
}

/* Sends the continuation, which is complete. */
FUSEE_FN void send_continuation(struct sampler_context *c, struct scratch *s)
{
	struct record_stack *r = &s->record.stack;
	__u32 size;

	outer_end(s);
	size = RECORD_STACK_HEAD + 8 * s->at;
	r->begin.pc = s->search.pc;
	r->begin.sp = s->search.sp;
	if (size > sizeof(*r) || output(c, s, RECORD_CONTINUATION, size))
		return;
	s->copies.bytes += size;
	s->search.sent++;
	count(TICK_CONTINUED);
}
#endif
