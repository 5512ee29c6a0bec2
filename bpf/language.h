/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames of languages: the turn of the one language unwinder that a program is linked with, and
 * what it emitted.
 */
#ifndef BPF_LANGUAGE_H
#define BPF_LANGUAGE_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "sample.h"
#include "records.h"

_Static_assert(FUSEE_EMIT_HEAD == SAMPLER_RECORD_HEAD, "an emission's head is a record's");

/* Overridden by the language unwinder of this program; without one nothing is anybody's. */
__attribute__((weak, noinline)) int fusee_language_step(__u32 slot)
{
	__asm__ volatile("" : "+r"(slot));
	return FUSEE_PASS;
}

FUSEE_FN struct fusee_emissions *emissions(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&fusee_emissions, &zero);
}

/* Before the first step. */
FUSEE_FN void language_begin(struct fusee_unwind *u, struct scratch *s)
{
	struct fusee_emissions *e = emissions();

	for (__u32 i = 0; i < 8; i++)
		u->scratch[i] = 0;
	u->process = s->record.process;
	u->pid = s->record.pid;
	u->tid = s->record.tid;
	u->slot = s->slot;
	u->npushed = 0;
	if (e)
		e->n = e->at = 0;
}

/* The step lied, or stopped for a reason of its own. */
FUSEE_FN int language_cut(struct fusee_unwind *u, struct scratch *s, __u32 reason)
{
	s->cut = (s->slot + 1) << SAMPLER_CUT_SHIFT | (reason & SAMPLER_CUT_REASON);
	u->error = 0;
	return LEFT_CUT;
}

/* The frame that the step pushed goes to the record, instead of the machine's. 0; -1: no room. */
FUSEE_FN int take_pushed(struct fusee_unwind *u, struct scratch *s)
{
	__u32 at = s->at;

	if (at > SAMPLER_MAX_WORDS - 3)
		return -1;
	s->record.frames[at] = (__u64)SAMPLER_PUSHED << SAMPLER_FILE_SHIFT | s->slot;
	s->record.frames[at + 1] = u->pushed[0];
	s->record.frames[at + 2] = u->pushed[1];
	s->at = at + 3;
	s->pushed = 1;
	u->npushed = 0;
	return 0;
}

/* The step's turn at a place that it claimed. NATIVE: now the native unwinders'. */
FUSEE_FN int language_turn(struct fusee_unwind *u, struct scratch *s, struct sampler_mapping *m,
			   __u64 at)
{
	__u64 sp = u->sp;
	int next;

	u->error = 0;
	u->claim_lo = m->lo;
	u->claim_arg = m->claim - 1;
	give_table(u, &m->language);
	next = fusee_language_step(0);
	if (u->npushed && take_pushed(u, s))
		return language_cut(u, s, SAMPLER_NO_ROOM);
	switch (next) {
	case FUSEE_AGAIN:
		return AGAIN;
	case FUSEE_NEXT:
		if (u->sp <= sp)
			return language_cut(u, s, SAMPLER_BACKWARDS);
		if (!s->pushed && push(s, m, at))
			return LEFT_CODE;
		s->pushed = 0;
		s->guessed = u->flags & FUSEE_GUESSED;
		u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FIRST | FUSEE_GUESSED);
		return AGAIN;
	case FUSEE_STOP:
		if (u->error)
			return language_cut(u, s, u->error);
		return s->pushed || !push(s, m, at) ? WHOLE : LEFT_CODE;
	case FUSEE_NATIVE_TOO:
		s->pushed = 0;
		return NATIVE;
	default:
		return NATIVE;
	}
}

/* What was not sent, or of a stack that was not, is to be emitted again. */
__attribute__((noinline)) int sampler_unsent(__u32 unused)
{
	struct fusee_emissions *e = emissions();

	__asm__ volatile("" : "+r"(unused));
	if (!e)
		return 0;
	for (__u32 i = 0; i < FUSEE_EMITS; i++) {
		if (i >= e->n)
			break;
		bpf_map_delete_elem(&fusee_sent, &e->key[i]);
	}
	e->n = 0;
	return 0;
}

/* Before the stack itself. 0, or -1: there is no room in the ring. */
FUSEE_FN int send_emissions(struct sampler_context *c, const struct sampler_record *r)
{
	struct fusee_emissions *e = emissions();
	struct sampler_record *head;
	__u32 len;

	if (!e || !e->n)
		return 0;
	len = e->at;
	if (len > FUSEE_EMIT_ROOM)
		return -1;
	head = (void *)e->head;
	head->process = r->process;
	head->pid = r->pid;
	head->tid = r->tid;
	head->period = head->runtime = 0;
	head->left = SAMPLER_EMISSIONS;
	head->version = e->key[0].slot;
	head->nkernel = 0;
	head->nuser = len / 8;
	return bpf_perf_event_output(c, &sampler_output, BPF_F_CURRENT_CPU, e->head,
				     SAMPLER_RECORD_HEAD + len)
		       ? -1
		       : 0;
}
#endif
