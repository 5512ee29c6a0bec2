/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The BPF sampler. Its program runs at each tick of a perf event. It unwinds the stack and sends a
 * record of the frames, and returns 0, so that the event writes no sample. A stack that it can't
 * unwind to the outermost frame is sent as a stack copy; where no copy can be made, the program
 * returns 1 and the event writes its own sample.
 *
 * The object is linked when it is loaded: once with the native unwinders' steps (sampler_tick), and
 * for each language unwinder that has claimed code once more with that unwinder's step
 * (sampler_language). sampler_tick hands the ticks of such processes over by a tail call.
 */
#define FUSEE_CORE /* the functions that steps call are here */

#include "begin.h"
#include "continue.h"
#include "copy.h"
#include "cpu_ticks.h"
#include "go_on.h"
#include "labels.h"
#include "language.h"
#include "processes.h"
#include "replaced.h"
#include "sample.h"
#include "stack.h"
#include "wake.h"
#include "walk.h"
#ifdef SAMPLER_OF_PROBES
#include "probe_cpu.h"
#endif

/* By number of the language unwinder: its sampler_language. */
struct {
	__uint(type, 3 /* PROG_ARRAY */);
	__uint(max_entries, SAMPLER_LANGUAGES);
	__uint(key_size, 4);
	__uint(value_size, 4);
} sampler_programs SEC(".maps");

/* ---- registers ---- */

/* The user registers of a thread that was interrupted in the kernel, which saved them at the top of
 * the thread's kernel stack. 0 or -1. */
FUSEE_FN int saved_regs(struct user_regs *to)
{
	struct task_struct *task;
	char *stack;

	if (kernel_has(task_pt_regs) && kernel_has(get_current_task_btf)) {
		void *regs = bpf_task_pt_regs(bpf_get_current_task_btf());

		return regs && !bpf_probe_read_kernel(to, sizeof(*to), regs) ? 0 : -1;
	}
	task = bpf_get_current_task();
	/* THREAD_SIZE of x86-64 without KASAN */
	if (kernel_read(&stack, &task->stack) ||
	    bpf_probe_read_kernel(to, sizeof(*to), stack + 16384 - sizeof(*to)))
		return -1;
	return 0;
}

/* A load of its own for each: the context may only be read at constant offsets. */
#ifndef SAMPLER_IN_KERNEL
#define LOAD(reg)                                   \
	do {                                        \
		__u64 value = c->regs.reg;          \
		__asm__ volatile("" : "+r"(value)); \
		s->regs.reg = value;                \
	} while (0)

FUSEE_FN int user_regs(const struct sampler_context *c, struct scratch *s)
{
	LOAD(cs);
	if (!(s->regs.cs & 3))
		return saved_regs(&s->regs);
	LOAD(r15);
	LOAD(r14);
	LOAD(r13);
	LOAD(r12);
	LOAD(rbp);
	LOAD(rbx);
	LOAD(r11);
	LOAD(r10);
	LOAD(r9);
	LOAD(r8);
	LOAD(rax);
	LOAD(rcx);
	LOAD(rdx);
	LOAD(rsi);
	LOAD(rdi);
	LOAD(rip);
	LOAD(rsp);
#ifdef SAMPLER_OF_PROBES
	to_returned(s);
#endif
	return 0;
}
#else
FUSEE_FN int user_regs(const struct sampler_context *c, struct scratch *s)
{
	(void)c;
	return saved_regs(&s->regs);
}
#endif

/* ---- stacks that are not unwound in the kernel ---- */

/* Copies must not fill the ring: records of mappings go through it too. If they were lost, no stack
 * could be unwound, and all would be copied. */
FUSEE_FN int may_copy(struct scratch *s, const struct sampler_settings *o)
{
	__u32 round = READ_ONCE(o->round);

	if (s->copies.round != round)
		s->copies.bytes = 0;
	s->copies.round = round;
	return s->copies.bytes / 1024 < READ_ONCE(o->copy_limit);
}

/* Sends the tick without a stack. Returns what the event is to be answered. */
FUSEE_FN int send_missed(struct sampler_context *c, struct scratch *s, __u32 why)
{
	struct record_missed *r = &s->record.missed;

	bpf_get_current_comm(r->comm, sizeof(r->comm));
	r->why = why;
	r->pad = 0;
	return sent(output(c, s, RECORD_MISSED, sizeof(*r))) ? 1 : 0;
}

#if defined(SAMPLER_IN_KERNEL) || defined(SAMPLER_OF_PROBES) /* no event could send a sample */
FUSEE_FN int send_deferred(struct sampler_context *c, struct scratch *s, __u32 why)
{
	return send_missed(c, s, why);
}
#else
/* Sends what the event's own sample, which follows, does not tell. If the ring is full, the event
 * counts its sample as lost itself. */
FUSEE_FN int send_deferred(struct sampler_context *c, struct scratch *s, __u32 why)
{
	struct record_deferred *r = &s->record.deferred;

	(void)why;
	r->stop = s->stop;
	r->pad = 0;
	output(c, s, RECORD_DEFERRED, sizeof(*r));
	return 1;
}
#endif

/* Sends what user space cannot read: the return addresses of the stack that it is to unwind. */
FUSEE_FN void send_returns(struct sampler_context *c, struct scratch *s)
{
	__u32 n = sampler_returns(is_in_kernel(c)), size;

	if (!n)
		return;
	size = RECORD_RETURNS_HEAD + n * sizeof(struct walk_return);
	__asm__ volatile("" : "+r"(size)); /* it is the size whose bound the verifier must see */
	if (size <= sizeof(struct record_returns))
		output(c, s, RECORD_RETURNS, size);
}

/* The stack was not unwound. Sends a copy of it, or the tick without a stack, or lets the event
 * send its own sample. Returns what the event is to be answered. */
FUSEE_FN int send_not_unwound(struct sampler_context *c, struct scratch *s, __u32 why)
{
	struct sampler_settings *o = settings();

	count(why);
	if (o && why != TICK_NO_REGISTERS && why != TICK_STOPPED)
		o->unknown_ticks++;
	if (o &&
	    (why == TICK_UNKNOWN_PROCESS || why == TICK_UNKNOWN_CODE || why == TICK_TABLE_ABSENT))
		sampler_wake_reader(s->record.tick.head.pid, s->version);
	if (o && why != TICK_NO_REGISTERS) {
		if (!may_copy(s, o))
			return send_missed(c, s, why);
		send_returns(c, s);
		if (o->copy_bytes && !send_copy(c, s, o->copy_bytes))
			return 0;
		s->copies.bytes += 65536;
	}
	return send_deferred(c, s, why);
}

/* ---- stacks that are ---- */

FUSEE_FN int send_stack(struct sampler_context *c, struct scratch *s)
{
	struct record_stack *r = &s->record.stack;
	__u32 size;

	outer_end(s);
	size = RECORD_STACK_HEAD + 8 * s->at;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	count(TICK_UNWOUND);
	if (size > sizeof(*r))
		return 1;
	return sent(output(c, s, RECORD_STACK, size)) ? 1 : 0;
}

/* Notes at which page the walk ended. CPUs race; what is lost is noted by a later walk. */
FUSEE_FN __u32 require_page(const struct fusee_unwind *u)
{
	struct sampler_settings *o = settings();
	__u32 i;

	if (!o)
		return TICK_TABLE_ABSENT;
	i = READ_ONCE(o->nrequired);
	READ_ONCE(o->nrequired) = i + 1;
	o->required_pages[i & (REQUIRED_PAGES - 1)] = u->absent;
	return TICK_TABLE_ABSENT;
}

/* Goes on with a walk that has begun. If it comes to another language's code, this does not return.
 * Returns enum tick_result. */
FUSEE_FN __u32 walk_on(struct sampler_context *c, struct scratch *s, const int languages)
{
	struct fusee_unwind *u = fusee_current();
	int how = walk(s);

	if (!u)
		return TICK_STOPPED;
	if (languages && how == STEP_OTHER) {
		s->resumed = 1;
		bpf_tail_call(c, &sampler_programs, s->slot);
		s->resumed = 0;
		how = STEP_UNKNOWN_CODE; /* it is not loaded, or there were too many calls */
	}
	if (how == STEP_CHANGED || s->version != version_of(s->chunk, s->record.tick.head.process))
		return TICK_CHANGED;
	if (how == STEP_ABSENT)
		return require_page(u);
	if (how == STEP_FULL) {
		s->record.tick.head.flags |= RECORD_TOO_DEEP;
		outer_drop(s);
	} else if (how == STEP_UNKNOWN_CODE && !u->pc) { /* user space could not say more */
		s->record.tick.head.flags |= RECORD_RETURNS_TO_0;
	} else if (how != STEP_COMPLETE) {
		return how == STEP_UNKNOWN_CODE ? TICK_UNKNOWN_CODE : TICK_STOPPED;
	}
	s->record.stack.version = s->version;
	return TICK_UNWOUND;
}

/* Unwinds the stack over the mappings of a pid entry. Returns enum tick_result. */
FUSEE_FN __u32 walk_published(struct sampler_context *c, struct scratch *s, struct pid_entry *entry,
			      const int languages)
{
	struct map_chunk *head = chunk_at(entry->chunk);
	struct fusee_unwind *u = fusee_current();

	s->chunk = entry->chunk;
	s->record.tick.head.process = entry->process;
	s->version = version_of(s->chunk, entry->process);
	if (s->version & 1 || !u || !head)
		return TICK_CHANGED;
	s->as_of = READ_ONCE(head->as_of);
	walk_begin(c, u, s, languages);
	if (head->label.words && sampler_label(s->chunk))
		send_labels(c, s);
	if (languages && head->follow)
		u->flags |= FUSEE_FOLLOW;
	return walk_on(c, s, languages);
}

/* Unwinds this tick's stack; entry may be NULL. Returns enum tick_result. */
FUSEE_FN __u32 walk_tick(struct sampler_context *c, struct scratch *s, struct pid_entry *entry,
			 const int languages)
{
	s->version = 0;
	if (user_regs(c, s))
		return TICK_NO_REGISTERS;
#ifdef SAMPLER_IN_KERNEL /* of other ticks the event's own sample has the kernel frames */
	if (!(s->regs.cs & 3)) {
		walk_kernel_only(c, s);
		return TICK_UNWOUND;
	}
#endif
	if (s->regs.cs != USER_CS)
		return TICK_NO_REGISTERS;
	return entry ? walk_published(c, s, entry, languages) : TICK_UNKNOWN_PROCESS;
}

/* ---- programs ---- */

#ifdef SAMPLER_OF_WAITS
#include "waits.h"
#elif defined(SAMPLER_OF_PROBES)
#include "probes.h"

#include "inuse.h"
#elif defined(SAMPLER_OF_TRACEPOINTS)
#include "tracepoints.h"
#else
/* Threads with events of their own have no samples of other events, and other threads have samples
 * of the CPUs' events only. */
FUSEE_FN int is_of_thread(const struct sampler_settings *o, __u64 period, __u32 tid)
{
	int own;

	if (!o->own_threads)
		return 1;
	own = fusee_bpf_map_lookup_elem(&sampler_threads, &tid) ? 1 : 0;
	return own == (period != o->cpu_period);
}

/* Is this tick a sample of its process? Sets what the tick represents. A function of its own in the
 * kernel: its stack is free again before the walk, whose functions may have 512 bytes together with
 * the program's (Linux 5.10). */
static __attribute__((noinline)) int is_selected(const struct sampler_context *c,
						 struct record_tick *r, struct sampler_settings *o,
						 __u64 ids, __u32 cpu_event)
{
	__u32 tgid = ids >> 32;
	struct process_rate *rate = fusee_bpf_map_lookup_elem(&sampler_rates, &tgid);
	__u64 period = c->sample_period, selected;

	if (!rate)
		rate = join_group(o, tgid);
	selected = rate ? rate->period : o->default_period;
	r->period = period;
	r->head.flags = cpu_event == NO_CPU_EVENT ? 0 : RECORD_CPU_EVENT;
	r->head.share = READ_ONCE(o->share);
	if (selected != PERIOD_ANY && selected != period)
		return 0;
	if (!is_of_thread(o, period, ids))
		return 0;
	if (rate && rate->keep) {
		r->period = rate->weight;
		if (bpf_get_prandom_u32() >= rate->keep)
			return 0;
	}
	return !r->head.share || bpf_get_prandom_u32() >> 24 < r->head.share;
}

/* Notes the interrupted thread. */
FUSEE_FN void describe(struct record_tick *r, __u64 ids)
{
	struct task_struct *task = bpf_get_current_task();

	r->head.pid = ids >> 32;
	r->head.tid = ids;
	r->head.process = 0;
	if (kernel_read(&r->runtime, &task->se.sum_exec_runtime))
		r->runtime = 0;
}
#endif

/* 1 + the language unwinder whose program begins walks in this process; 0: none. */
FUSEE_FN __u32 program_of(const struct pid_entry *entry)
{
	struct map_chunk *c = chunk_at(entry->chunk);

	return c ? c->program : 0;
}

/* A sample of the running thread is to be taken. Returns what the event is to be answered. */
FUSEE_FN int take(struct sampler_context *c, struct scratch *s, __u64 ids)
{
	__u32 tgid = ids >> 32, result, program;
	struct pid_entry *entry = fusee_bpf_map_lookup_elem(&sampler_pids, &tgid);

	program = entry ? program_of(entry) : 0;
	s->resumed = 0;
	s->search.active = s->search.number = s->search.met = 0;
	if (program) /* if the call fails, the walk ends where the claim begins */
		bpf_tail_call(c, &sampler_programs, program - 1);
	describe(&s->record.tick, ids);
	s->languages = 0;
	s->stop.unwinder = s->stop.reason = 0;
	result = walk_tick(c, s, entry, 0);
	return result == TICK_UNWOUND ? send_stack(c, s) : send_not_unwound(c, s, result);
}

#ifdef SAMPLER_OF_WAITS
#define SAMPLER_PROGRAM SEC("raw_tp/irq_work_entry")

/* The interrupt that fusee_sampler_take() has requested: the thread that it chose is on its CPU,
 * and its stack is as it was. */
SAMPLER_PROGRAM
int sampler_tick(struct sampler_context *c)
{
	struct scratch *s = scratch();
	__u64 ids;

	if (!s || !(ids = chosen_thread()))
		return 0;
	give_storage();
	s->began = 0;
	return take(c, s, ids);
}
#elif defined(SAMPLER_OF_PROBES) || defined(SAMPLER_OF_TRACEPOINTS)
#ifdef SAMPLER_OF_PROBES
#define SAMPLER_PROGRAM SEC("uprobe")
#else
#define SAMPLER_PROGRAM SEC("raw_tp")
#endif

/* A hit is a sample: probe_take(). */
SAMPLER_PROGRAM
int sampler_tick(struct sampler_context *c)
{
	struct scratch *s = scratch();

	if (s) {
		s->began = 0;
		take(c, s, bpf_get_current_pid_tgid());
	}
	return probe_end();
}
#else
#define SAMPLER_PROGRAM SEC("perf_event")

/* Returns what the event is to be answered. */
FUSEE_FN int tick(struct sampler_context *c, struct scratch *s, struct sampler_settings *o)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 cpu_event = cpu_event_of(o, c->sample_period);

	if (cpu_event != NO_CPU_EVENT)
		note_cpu_tick(o, cpu_event, c->sample_period, !ids);
	if (!ids) {
		count(TICK_IDLE);
		return 0;
	}
	if (!is_selected(c, &s->record.tick, o, ids, cpu_event)) {
		count(TICK_NOT_SELECTED);
		return 0;
	}
	if (cpu_event != NO_CPU_EVENT)
		note_selected_tick(cpu_event);
	return take(c, s, ids);
}

SAMPLER_PROGRAM
int sampler_tick(struct sampler_context *c)
{
	struct sampler_settings *o = settings();
	struct scratch *s = scratch();
	int answer;

	if (!s || !o)
		return 1;
	s->began = begin_time(o);
	answer = tick(c, s, o);
	note_time(s->began);
	return answer;
}
#endif

/* Goes on after a walk that did not begin at the thread's registers, or that has stopped, with the
 * next continuation. Does not return if there is one, else it sends the copy. */
FUSEE_FN int continue_tick(struct sampler_context *c, struct scratch *s, __u32 result)
{
	struct sampler_settings *o = settings();
	struct kept *k = kept();
	int how = CONTINUED_NOT;

	if (o && o->copy_bytes && may_copy(s, o))
		how = sampler_judge(result);
	if (how >= CONTINUED_PART &&
	    (send_emissions(c, &s->record.tick.head) || send_continuation(c, s, how)))
		how = CONTINUED_DROPPED;
	if (how <= CONTINUED_DROPPED)
		sampler_unsent(0);
	if (s->search.active && k)
		result = k->result;
	if (!sampler_go_on(how)) {
		s->resumed = 1;
		bpf_tail_call(c, &sampler_programs, s->slot);
		s->resumed = s->search.active = 0;
	}
	return send_not_unwound(c, s, result);
}

/* The same, of a process with code of this program's language. */
FUSEE_FN int language_tick(struct sampler_context *c, struct scratch *s)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct pid_entry *entry;
	__u32 tgid = ids >> 32, result;

	if (s->resumed) {
		s->resumed = 0;
		result = walk_on(c, s, 1);
	} else {
		entry = fusee_bpf_map_lookup_elem(&sampler_pids, &tgid);
		describe(&s->record.tick, ids);
		s->stop.unwinder = s->stop.reason = 0;
		s->languages = 1;
		s->slot = entry ? program_of(entry) - 1 : 0;
		result = walk_tick(c, s, entry, 1);
	}
	if (result != TICK_UNWOUND || s->search.active)
		return continue_tick(c, s, result);
	if (send_emissions(c, &s->record.tick.head)) { /* the ring may have room for what follows */
		sampler_unsent(0);
		return send_not_unwound(c, s, TICK_STOPPED);
	}
	return send_stack(c, s);
}

SAMPLER_PROGRAM
int sampler_language(struct sampler_context *c)
{
	struct scratch *s = scratch();
	int answer;

	if (!s)
		return 1;
	answer = language_tick(c, s);
#if defined(SAMPLER_OF_PROBES) || defined(SAMPLER_OF_TRACEPOINTS)
	answer = probe_end();
#else
	note_time(s->began);
#endif
	return answer;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
