/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls the step of the language unwinder that a program is linked with, takes the frames that the
 * step pushed, and sends what it emitted. */
#ifndef BPF_LANGUAGE_H
#define BPF_LANGUAGE_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "sample.h"

_Static_assert(sizeof(struct record_emission) <= FUSEE_EMIT_HEAD,
	       "there is room for the record's head before emissions");

/* The weak default claims no frame; the language unwinder of this program overrides it. */
__attribute__((weak, noinline)) int fusee_language_step(__u32 slot)
{
	__asm__ volatile("" : "+r"(slot));
	return FUSEE_PASS;
}

#define MAX_IDLE 64u /* calls of a step in a row that push nothing */

FUSEE_FN struct fusee_emissions *emissions(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&fusee_emissions, &zero);
}

/* The thread pointer, which only wrfsbase could have changed since the thread was put on its CPU;
 * C libraries set it with arch_prctl or clone, which write the kernel's copy too. 0: not known. */
FUSEE_FN __u64 thread_pointer(void)
{
	struct task_struct *task = bpf_get_current_task();
	unsigned long base;

	return kernel_read(&base, &task->thread.fsbase) ? 0 : base;
}

/* Prepares a walk. */
FUSEE_FN void language_begin(struct fusee_unwind *u, struct scratch *s)
{
	struct fusee_emissions *e = emissions();

	for (__u32 i = 0; i < 8; i++)
		u->scratch[i] = 0;
	u->process = s->record.tick.head.process;
	u->pid = s->record.tick.head.pid;
	u->tid = s->record.tick.head.tid;
	u->slot = s->slot;
	u->tls = thread_pointer();
	u->time_ns = bpf_ktime_get_ns();
	u->value = s->record.tick.period;
	u->npushed = 0;
	if (e)
		e->n = e->at = 0;
}

/* Ends the walk for a reason of the step, or for an enum walk_fault. */
FUSEE_FN int language_stop(struct fusee_unwind *u, struct scratch *s, __u32 reason)
{
	s->stop.unwinder = s->slot + 1;
	s->stop.reason = reason;
	u->error = 0;
	return STEP_STOPPED;
}

/* Is the frame that the step pushed in the record already, at this index? */
FUSEE_FN int is_equal_to(struct fusee_unwind *u, struct scratch *s, __u32 i)
{
	if (i >= s->at || i > RECORD_MAX_WORDS - FRAME_PUSHED_WORDS)
		return 0;
	return s->record.stack.words[i] == ((__u64)FRAME_PUSHED << FRAME_KIND_SHIFT | s->slot) &&
	       s->record.stack.words[i + 1] == u->pushed[0] &&
	       s->record.stack.words[i + 2] == u->pushed[1];
}

/* Appends the frame that the step pushed, which replaces the machine's. STEP_AGAIN or STEP_FULL. */
FUSEE_FN int append_pushed(struct fusee_unwind *u, struct scratch *s)
{
	__u64 hash = (u->pushed[0] ^ u->pushed[1]) & (SCRATCH_EQUAL - 1);
	__u32 at = s->at, equal = s->equal[hash];

	if (at > RECORD_MAX_WORDS - FRAME_PUSHED_WORDS)
		return STEP_FULL;
	u->npushed = 0;
	s->pushed = 1;
	s->idle = 0;
	if (is_equal_to(u, s, equal)) {
		s->record.stack.words[at] = (__u64)FRAME_PUSHED << FRAME_KIND_SHIFT | FRAME_AGAIN |
					    equal;
		s->at = at + 1;
		return STEP_AGAIN;
	}
	s->record.stack.words[at] = (__u64)FRAME_PUSHED << FRAME_KIND_SHIFT | s->slot;
	s->record.stack.words[at + 1] = u->pushed[0];
	s->record.stack.words[at + 2] = u->pushed[1];
	s->equal[hash] = at;
	s->at = at + FRAME_PUSHED_WORDS;
	return STEP_AGAIN;
}

/* Appends the machine's frame, unless the step has pushed frames in its place. As above. */
FUSEE_FN int append_unpushed(struct scratch *s, const struct chunk_mapping *m, __u64 at)
{
	int r = s->pushed ? STEP_AGAIN : push(s, m, at);

	s->pushed = 0;
	return r;
}

/* Calls the step at a pc that its unwinder claims. STEP_NATIVE: the native unwinders are next. */
FUSEE_FN int language_turn(struct fusee_unwind *u, struct scratch *s, struct chunk_mapping *m,
			   __u64 at)
{
	__u64 sp = u->sp;
	int next, r;

	u->error = 0;
	u->claim_lo = m->lo;
	u->claim_arg = m->claim - 1;
	set_table(u, &m->language);
	s->idle++;
	next = fusee_language_step(0);
	if (u->npushed && append_pushed(u, s))
		return STEP_FULL;
	switch (next) {
	case FUSEE_AGAIN:
		return s->idle < MAX_IDLE ? STEP_AGAIN : language_stop(u, s, WALK_FAULT_ENDLESS);
	case FUSEE_NEXT:
		if (u->sp <= sp)
			return language_stop(u, s, WALK_FAULT_BACKWARDS);
		r = append_unpushed(s, m, at);
		if (r)
			return r;
		s->idle = 0;
		s->guessed = u->flags & FUSEE_GUESSED;
		u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FIRST | FUSEE_GUESSED);
		return STEP_AGAIN;
	case FUSEE_STOP:
		if (u->error)
			return language_stop(u, s, u->error);
		r = append_unpushed(s, m, at);
		return r ? r : STEP_COMPLETE;
	case FUSEE_NATIVE_TOO:
		s->pushed = 0;
		return STEP_NATIVE;
	default:
		return STEP_NATIVE;
	}
}

/* Forgets that the sample's emissions were sent: they, or the stack that they are about, were not,
 * so the next sample emits them again. */
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

/* Sends the sample's emissions; the stack is to follow. 0; -1: no room in the ring. */
FUSEE_FN int send_emissions(struct sampler_context *c, const struct record_head *tick)
{
	struct fusee_emissions *e = emissions();
	struct record_emission *r;
	__u32 len;

	if (!e || !e->n)
		return 0;
	len = e->at;
	if (len > FUSEE_EMIT_ROOM)
		return -1;
	r = (void *)&e->head[FUSEE_EMIT_HEAD - sizeof(*r)]; /* directly before the bytes */
	r->head = *tick;
	r->head.kind = RECORD_EMISSION;
	r->head.size = sizeof(*r) + len;
	r->unwinder = e->key[0].slot;
	r->bytes = len;
	return bpf_perf_event_output(c, &sampler_output, BPF_F_CURRENT_CPU, r, sizeof(*r) + len)
		       ? -1
		       : 0;
}
#endif
