/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Unwinds a stack over the mappings that user space published. */
#ifndef BPF_WALK_H
#define BPF_WALK_H

#include <fusee/unwinder.bpf.h>

#include "begin.h"
#include "called.h"
#include "chunks.h"
#include "language.h"
#include "probed.h"
#include "replaced.h"
#include "sample.h"
#include "stack.h"

/* The weak defaults pass; the native unwinders' steps override them. */
__attribute__((weak, noinline)) int fusee_step_dwarf(__u32 slot)
{
	__asm__ volatile("" : "+r"(slot));
	return FUSEE_PASS;
}

__attribute__((weak, noinline)) int fusee_step_framepointer(__u32 slot)
{
	__asm__ volatile("" : "+r"(slot));
	return FUSEE_PASS;
}

/* The mapping that was found last, which is most often the caller's too; NULL: it does not hold
 * this address. If the list was written since, the walk is discarded. */
FUSEE_FN struct chunk_mapping *found_mapping(const struct fusee_unwind *u, const struct scratch *s,
					     __u64 at)
{
	struct chunk_mapping *m;
	__u32 i = s->next.mapping;
	struct map_chunk *c;

	if (at - u->map_lo >= u->map_hi - u->map_lo)
		return 0;
	c = chunk_at(s->next.chunk);
	__asm__ volatile("" : "+r"(i)); /* the verifier needs the bound */
	if (!c || i >= CHUNK_MAPPINGS)
		return 0;
	m = &c->mappings[i];
	return m->lo == u->map_lo ? m : 0;
}

/* Searches for the mapping and sets what the steps read of it. NULL: no published mapping. */
FUSEE_FN struct chunk_mapping *search_mapping(struct fusee_unwind *u, struct scratch *s, __u64 at)
{
	__u32 chunk = s->chunk, i;
	struct map_chunk *c = find_chunk(&chunk, at);
	struct chunk_mapping *m;

	if (!c)
		return 0;
	i = first_above(c, at);
	if (i >= c->n || i >= CHUNK_MAPPINGS)
		return 0;
	m = &c->mappings[i];
	if (at < m->lo)
		return 0;
	s->next.chunk = chunk;
	s->next.mapping = i;
	u->map_lo = m->lo;
	u->map_hi = m->hi;
	u->file = m->file;
	u->bias = m->bias;
	return m;
}

/* Finds the frame's mapping. NULL: no published mapping. */
FUSEE_FN struct chunk_mapping *locate(struct fusee_unwind *u, struct scratch *s, __u64 at)
{
	struct chunk_mapping *m = found_mapping(u, s, at);

	if (!m)
		m = search_mapping(u, s, at);
	if (m)
		u->offset = u->pc - m->bias;
	return m;
}

/* Sets u->cfa to the CFA of a claimed frame, 0 where no table has it. */
FUSEE_FN void find_cfa(struct fusee_unwind *u, struct scratch *s, const struct chunk_mapping *m)
{
	__u32 flags = u->flags;

	u->cfa = 0;
	u->flags = flags | FUSEE_FOLLOW | FUSEE_CFA_ONLY;
	set_table(u, &m->table[0]);
	fusee_step_dwarf(0);
	u->flags = flags;
	s->has_cfa = 1;
}

/* The frame is in code that a language unwinder claims. */
FUSEE_FN int claimed_step(struct fusee_unwind *u, struct scratch *s, const struct chunk_mapping *m,
			  __u64 at)
{
	if (m->unwinder == NO_PROGRAM) {
		s->record.tick.head.flags |= RECORD_NO_LANGUAGE;
		return STEP_NATIVE;
	}
	if (!s->languages)
		return STEP_UNKNOWN_CODE;
	if (m->unwinder - 1 != s->slot)
		return language_switch(u, s, m->unwinder - 1) ? STEP_UNKNOWN_CODE : STEP_OTHER;
	if (m->registers && !s->has_cfa)
		find_cfa(u, s, m);
	if (u->absent)
		return STEP_ABSENT;
	language_prepare(u, s, m);
	s->search.met = 1;
	s->claimed.at = at;
	return STEP_CLAIMED;
}

/* The turn of the native unwinders. */
FUSEE_FN int native_step(struct fusee_unwind *u, struct scratch *s, const struct chunk_mapping *m,
			 __u64 at)
{
	int next = append_unpushed(s, m, at);

	if (next != STEP_AGAIN)
		return next;
	s->idle = 0;
	u->error = 0;
	set_table(u, &m->table[0]);
	next = fusee_step_dwarf(0);
	if (next == FUSEE_PASS) {
		set_table(u, &m->table[1]);
		next = fusee_step_framepointer(0);
	}
	if (u->absent)
		return STEP_ABSENT;
	if (next == FUSEE_NEXT) {
		s->has_cfa = 0;
		s->next.guessed = u->flags & FUSEE_GUESSED;
		u->flags &= ~(__u32)(FUSEE_GUESSED | FUSEE_SIGNAL | FUSEE_FIRST |
				     FUSEE_INEXPRESSIBLE);
		return STEP_AGAIN;
	}
	return next == FUSEE_STOP && !u->error ? STEP_COMPLETE : STEP_STOPPED;
}

/*
 * The next three are global functions: the verifier checks each of them once, and not for each pass
 * of a loop or each caller. Below a language unwinder's step are only two others, because eight
 * functions may be nested, and it calls some of its own.
 */

/* pc is in no published mapping. If it has no code, and a call led there, goes to the caller:
 * STEP_AGAIN, else STEP_UNKNOWN_CODE. What was interrupted and is not the sampled instruction was
 * in memory; the sampled instruction itself may be about to come there. */
__attribute__((noinline)) int sampler_called(__u32 unused)
{
	struct fusee_unwind *u = fusee_current();
	__u8 code;

	__asm__ volatile("" : "+r"(unused));
	if (!u)
		return STEP_STOPPED;
	if (u->pc >= NULL_PAGE &&
	    (u->flags & FUSEE_FIRST || !fusee_bpf_probe_read_user(&code, 1, (const void *)u->pc)))
		return STEP_UNKNOWN_CODE;
	return step_out_of_call(u) == FUSEE_NEXT ? STEP_AGAIN : STEP_UNKNOWN_CODE;
}

/* leave_probe(), which is rare. */
__attribute__((noinline)) int sampler_probed(__u32 unused)
{
	struct fusee_unwind *u = fusee_current();

	__asm__ volatile("" : "+r"(unused));
	return u ? leave_probe(u) : -1;
}

#ifdef SAMPLER_OF_PROBES
/* The frame of a call that has returned: goes to its caller. */
FUSEE_FN int returned_step(struct fusee_unwind *u, struct scratch *s, const struct chunk_mapping *m,
			   __u64 at)
{
	int next = append_unpushed(s, m, at);

	if (next != STEP_AGAIN)
		return next;
	u->pc = s->replaced.returned;
	u->sp += 8;
	u->flags &= ~(__u32)(FUSEE_FIRST | FUSEE_PC_EXACT);
	return STEP_AGAIN;
}
#endif

/* Steps a frame; or prepares a language's step: STEP_CLAIMED. */
__attribute__((noinline)) int sampler_step(__u32 unused)
{
	struct fusee_unwind *u = fusee_current();
	struct scratch *s = scratch();
	struct chunk_mapping *m;
	__u64 at;
	int next;

	__asm__ volatile("" : "+r"(unused));
	if (!u || !s)
		return STEP_STOPPED;
	s->search.before = s->at;
	s->next.exact = u->flags & FUSEE_PC_EXACT;
	at = s->next.exact ? u->pc : u->pc - 1;
	m = locate(u, s, at);
	if ((!m || !m->file) && (u->pc & (PROBE_PAGE - 1)) <= PROBE_RETURNS && !sampler_probed(0))
		return STEP_AGAIN;
	if (!m || !(u->pc & (UPROBE_PAGE - 1))) { /* what is mapped before the page is not meant */
		next = sampler_returned(0);
		if (!m && next == STEP_UNKNOWN_CODE && u->flags & FUSEE_PC_EXACT)
			next = sampler_called(0);
		if (!m || next != STEP_UNKNOWN_CODE)
			return next;
	}
	if (READ_ONCE(m->changed) > s->as_of)
		return STEP_CHANGED;
#ifdef SAMPLER_OF_PROBES
	if (s->replaced.returned && u->flags & FUSEE_FIRST)
		return returned_step(u, s, m, at);
#endif
	next = m->unwinder ? claimed_step(u, s, m, at) : STEP_NATIVE;
	return next == STEP_NATIVE ? native_step(u, s, m, at) : next;
}

/* Goes on after a language's step with what that has answered. STEP_CLAIMED: the step is to be
 * called again at the same place, as it was prepared; STEP_NATIVE: sampler_native() goes on. */
__attribute__((noinline)) int sampler_answered(int answer)
{
	struct fusee_unwind *u = fusee_current();
	struct scratch *s = scratch();
	struct chunk_mapping *m;

	__asm__ volatile("" : "+r"(answer));
	if (!u || !s)
		return STEP_STOPPED;
	if (u->flags & FUSEE_OMIT_CALLEE)
		omit_callee(u, s);
	if (u->npushed && append_pushed(u, s))
		return STEP_STOPPED;
	if (answer == FUSEE_AGAIN)
		return s->idle++ < MAX_IDLE ? STEP_CLAIMED
					    : language_stop(u, s, WALK_FAULT_ENDLESS);
	m = found_mapping(u, s, s->claimed.at);
	return m ? language_turn(u, s, m, s->claimed.at, answer) : STEP_CHANGED;
}

/* Steps a frame that a language's step has passed on to the native unwinders. Apart from
 * sampler_answered(), as nested functions have 512 bytes of stack on kernels before 6.13. */
__attribute__((noinline)) int sampler_native(__u32 unused)
{
	struct fusee_unwind *u = fusee_current();
	struct scratch *s = scratch();
	struct chunk_mapping *m;

	__asm__ volatile("" : "+r"(unused));
	if (!u || !s)
		return STEP_STOPPED;
	m = found_mapping(u, s, s->claimed.at);
	return m ? native_step(u, s, m, s->claimed.at) : STEP_CHANGED;
}

#define WALK_STEPS 64u

/* Steps that many frames at most. STEP_AGAIN: there are more. */
__attribute__((noinline)) int sampler_steps(__u32 unused)
{
	int next = STEP_AGAIN;

	__asm__ volatile("" : "+r"(unused));
	for (__u32 i = 0; i < WALK_STEPS; i++) {
		if (next == STEP_AGAIN)
			next = sampler_step(0);
		if (next == STEP_CLAIMED)
			next = sampler_answered(fusee_language_step(0));
		if (next == STEP_NATIVE)
			next = sampler_native(0);
		if (next != STEP_AGAIN && next != STEP_CLAIMED)
			break;
	}
	return next == STEP_CLAIMED ? STEP_AGAIN : next;
}

/* If a system call was interrupted, pc is behind the syscall instruction, which may be the last of
 * its function. Then the instruction before pc is looked up, as in callers. */
FUSEE_FN void mark_syscall(struct fusee_unwind *u)
{
	__u8 code[2] = {0};

	if (fusee_read(u, code, 2, u->pc - 2))
		return;
	if (code[0] == 0x0f && code[1] == 0x05)
		u->flags &= ~(__u32)FUSEE_PC_EXACT;
	if (at_breakpoint(u->pc, code[1]))
		u->pc--;
}

/* Appends the kernel frames, which may begin with the marker of perf's callchains. */
FUSEE_FN void kernel_frames(const struct sampler_context *c, struct record_stack *r)
{
	long bytes = bpf_get_stack((void *)c, r->words, RECORD_MAX_KERNEL * 8, 0);

	r->nkernel = bytes > 0 ? (__u32)bytes / 8 : 0;
}

/* The thread pointer, which only wrfsbase could have changed since the thread was put on its CPU;
 * C libraries set it with arch_prctl or clone, which write the kernel's copy too. 0: not known. */
FUSEE_FN __u64 thread_pointer(void)
{
	struct task_struct *task = bpf_get_current_task();
	unsigned long base;

	return kernel_read(&base, &task->thread.fsbase) ? 0 : base;
}

/* Begins a walk. `languages` is constant at compile time, because sampler_tick does not even have
 * the maps of languages. */
FUSEE_FN void walk_begin(const struct sampler_context *c, struct fusee_unwind *u, struct scratch *s,
			 const int languages)
{
	struct record_stack *r = &s->record.stack;

	begin(u, &s->regs);
	u->tls = thread_pointer();
	u->map_lo = u->map_hi = 0; /* nothing is found yet */
	if (languages)
		language_begin(u, s);
	r->nkernel = 0;
	if (is_in_kernel(c)) {
		kernel_frames(c, r);
		mark_syscall(u);
	}
	s->at = r->nkernel;
	s->next.guessed = s->claimed.pushed = s->idle = s->has_cfa = 0;
	s->claimed.machine = 0;
	s->replaced.next = 0;
	s->deep.outer.frames = s->deep.outer.words = s->deep.rounds = 0;
}

/* The stack of a kernel thread. */
FUSEE_FN void walk_kernel_only(const struct sampler_context *c, struct scratch *s)
{
	struct record_stack *r = &s->record.stack;

	kernel_frames(c, r);
	r->version = 0;
	r->tick.head.flags |= RECORD_KERNEL_ONLY;
	s->at = r->nkernel;
	s->deep.outer.frames = s->deep.outer.words = s->deep.rounds = 0;
}

/* Goes on with a deep stack. Interrupts are off meanwhile, so the pauses between such walks are
 * long. Of a walk that goes on in another program, the rounds are counted together. */
FUSEE_FN int walk_deep(struct scratch *s)
{
	__u64 now = bpf_ktime_get_ns(), took;
	int next = STEP_AGAIN;

	if (!s->deep.rounds && now < s->deep.again)
		return STEP_AGAIN;
	for (__u32 i = 0; i < SAMPLER_DEEP_STEPS / WALK_STEPS && next == STEP_AGAIN; i++) {
		if (s->deep.rounds >= SAMPLER_DEEP_STEPS / WALK_STEPS)
			break;
		s->deep.rounds++;
		next = sampler_steps(0);
	}
	took = bpf_ktime_get_ns() - now;
	s->deep.again = now + took * SAMPLER_DEEP_SHARE;
	return next;
}

/* Unwinds the stack into the scratch's record. Returns enum step_end. */
FUSEE_FN int walk(struct scratch *s)
{
	int next = STEP_AGAIN;

	for (__u32 i = 0; i < SAMPLER_STEPS / WALK_STEPS && next == STEP_AGAIN; i++) {
		if (s->search.active && s->search.rounds++ >= SAMPLER_STEPS / WALK_STEPS)
			return STEP_FULL;
		next = sampler_steps(0);
	}
	if (next == STEP_AGAIN && !s->search.active)
		next = walk_deep(s);
	return next == STEP_AGAIN ? STEP_FULL : next;
}
#endif
