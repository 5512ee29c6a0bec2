/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The sampler in the kernel. It runs at each tick of an event that would otherwise write a copy of
 * the stack: where it can walk the stack to its end it sends the frames instead, and answers 0, so
 * that no copy is made. Whatever it can't do to the end it leaves to user space, with a copy of its
 * own, or, where it can't make one, by answering 1.
 *
 * It is linked with the native unwinders' steps when it is loaded: once as sampler_tick, and, for
 * each language unwinder that has claimed something, once as sampler_language with its step, which
 * sampler_tick hands the ticks of such processes to.
 */
#include "begin.h"
#include "copy.h"
#include "language.h"
#include "sample.h"
#include "records.h"

/* Overridden by the plugin that is there; without it, its answer is that it knows nothing. */
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

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, 8192); /* preallocated: before 6.1, events take no other */
	__type(key, __u32);
	__type(value, struct sampler_life);
} sampler_pids SEC(".maps");

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct sampler_decision);
} sampler_decisions SEC(".maps");

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__type(key, __u32);
	__type(value, struct sampler_process);
} sampler_processes SEC(".maps");

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__type(key, __u32);
	__type(value, struct sampler_settings);
} sampler_settings SEC(".maps");

/* By number of the unwinder: its sampler_language. */
struct {
	__uint(type, 3 /* PROG_ARRAY */);
	__uint(max_entries, SAMPLER_LANGUAGES);
	__uint(key_size, 4);
	__uint(value_size, 4);
} sampler_programs SEC(".maps");

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sampler_grid);
} sampler_grid SEC(".maps");

/* ---- where code lies ---- */

/* The element of a process's chain that may hold this address. */
FUSEE_FN struct sampler_process *element_of(__u32 key, __u64 at)
{
	struct sampler_process *p = fusee_bpf_map_lookup_elem(&sampler_processes, &key);

	for (__u32 i = 1; i < SAMPLER_CHAIN; i++) {
		__u32 last;

		if (!p || !p->next)
			break;
		last = p->n - 1;
		if (last >= SAMPLER_MAPPINGS || at < p->mappings[last].hi)
			break;
		key = p->next;
		p = fusee_bpf_map_lookup_elem(&sampler_processes, &key);
	}
	return p;
}

/* The number of the first mapping that ends above an address; SAMPLER_MAPPINGS and more: none does.
 */
FUSEE_FN __u32 first_above(struct sampler_process *p, __u64 at)
{
	__u32 low = 0, high = p->n;

	if (high > SAMPLER_MAPPINGS)
		return SAMPLER_MAPPINGS;
	for (__u32 i = 0; i < 7 && low < high; i++) {
		__u32 middle = (low + high) / 2;

		/* the verifier of 5.10 wants to see what the compiler knows */
		__asm__ volatile("" : "+r"(middle));
		if (middle >= SAMPLER_MAPPINGS)
			break;
		if (p->mappings[middle].hi > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The mapping that holds this address; NULL: none does. */
FUSEE_FN struct sampler_mapping *mapping_of(struct sampler_process *p, __u64 at)
{
	__u32 low = first_above(p, at);
	struct sampler_mapping *m;

	if (low >= p->n || low >= SAMPLER_MAPPINGS)
		return 0;
	m = &p->mappings[low];
	return at >= m->lo ? m : 0;
}

/* Tells the steps what they want to know of this frame's code. NULL: nobody in the kernel knows it.
 */
FUSEE_FN struct sampler_mapping *locate(struct fusee_unwind *u, struct scratch *s, __u64 at)
{
	struct sampler_process *p = element_of(s->element, at);
	struct sampler_mapping *m = p ? mapping_of(p, at) : 0;

	if (!m)
		return 0;
	u->map_lo = m->lo;
	u->map_hi = m->hi;
	u->file = m->file;
	u->bias = m->bias;
	u->offset = u->pc - m->bias;
	return m;
}

/* One frame. A global function, so that the verifier looks at it once and not at each turn. */
__attribute__((noinline)) int sampler_step(__u32 unused)
{
	struct fusee_unwind *u = state();
	struct scratch *s = scratch();
	struct sampler_mapping *m;
	__u64 at;
	int next;

	__asm__ volatile("" : "+r"(unused));
	if (!u || !s)
		return LEFT_CUT;
	at = u->flags & FUSEE_PC_EXACT ? u->pc : u->pc - 1;
	m = locate(u, s, at);
	if (!m || (m->claim && !s->languages))
		return LEFT_CODE;
	if (m->claim) {
		next = language_turn(u, s, m, at);
		if (next != NATIVE)
			return next;
	}
	if (!s->pushed && push(s, m, at))
		return LEFT_CODE;
	s->pushed = 0;
	u->error = 0;
	give_table(u, &m->table[0]);
	next = fusee_step_dwarf(0);
	if (next == FUSEE_PASS) {
		give_table(u, &m->table[1]);
		next = fusee_step_framepointer(0);
	}
	if (next == FUSEE_NEXT) {
		s->guessed = u->flags & FUSEE_GUESSED;
		u->flags &= ~(__u32)(FUSEE_GUESSED | FUSEE_SIGNAL | FUSEE_FIRST |
				     FUSEE_INEXPRESSIBLE);
		return AGAIN;
	}
	return next == FUSEE_STOP && !u->error ? WHOLE : LEFT_CUT;
}

/* ---- a sample ---- */

/* The user registers of a thread that was interrupted in the kernel, which saved them at the top of
 * its stack. 0 or -1. */
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

/* Each load on its own: the context may only be read at constant places. */
#define TAKE(reg)                                   \
	do {                                        \
		__u64 value = c->regs.reg;          \
		__asm__ volatile("" : "+r"(value)); \
		s->regs.reg = value;                \
	} while (0)

FUSEE_FN int user_regs(const struct sampler_context *c, struct scratch *s)
{
	TAKE(cs);
	if (!(s->regs.cs & 3))
		return saved_regs(&s->regs);
	TAKE(r15);
	TAKE(r14);
	TAKE(r13);
	TAKE(r12);
	TAKE(rbp);
	TAKE(rbx);
	TAKE(r11);
	TAKE(r10);
	TAKE(r9);
	TAKE(r8);
	TAKE(rax);
	TAKE(rcx);
	TAKE(rdx);
	TAKE(rsi);
	TAKE(rdi);
	TAKE(rip);
	TAKE(rsp);
	return 0;
}

/* Interrupted in a system call, pc is behind the syscall instruction, which may be its function's
 * last one: then, as with callers, the instruction before pc is what runs. */
FUSEE_FN void mark_syscall(struct fusee_unwind *u)
{
	__u8 code[2] = {0};

	if (!fusee_read(u, code, 2, u->pc - 2) && code[0] == 0x0f && code[1] == 0x05)
		u->flags &= ~(__u32)FUSEE_PC_EXACT;
}

/* The kernel's part, behind the marker of perf's callchains where the kernel hands that out. */
FUSEE_FN void kernel_frames(const struct sampler_context *c, struct sampler_record *r)
{
	long bytes = bpf_get_stack((void *)c, r->frames, SAMPLER_MAX_KERNEL * 8, 0);

	r->nkernel = bytes > 0 ? (__u32)bytes / 8 : 0;
}

/* Walks it. What is WHOLE stands in the scratch's record. languages is known when this is compiled:
 * sampler_tick has not even their maps. */
FUSEE_FN int walk(const struct sampler_context *c, struct fusee_unwind *u, struct scratch *s,
		  const int languages)
{
	int next = AGAIN;

	begin(u, &s->regs);
	if (languages)
		language_begin(u, s);
	s->record.nkernel = s->record.claimed = 0;
	{
		__u64 cs = c->regs.cs;

		__asm__ volatile("" : "+r"(cs));
		if (!(cs & 3)) {
			kernel_frames(c, &s->record);
			mark_syscall(u);
		}
	}
	s->at = s->record.nkernel;
	s->guessed = s->pushed = 0;
	for (__u32 i = 0; i < SAMPLER_MAX_FRAMES; i++) {
		next = sampler_step(0);
		if (next != AGAIN)
			break;
	}
	s->record.nuser = s->at - s->record.nkernel;
	if (next == AGAIN && s->pushed)
		return language_cut(u, s, SAMPLER_ENDLESS);
	return next;
}

/* 0, also where the ring is full; -1: it can't be sent. */
FUSEE_FN int send(struct sampler_context *c, struct scratch *s, __u32 frames)
{
	__u32 size = SAMPLER_RECORD_HEAD + 8 * frames;
	long r;

	if (size > sizeof(s->record))
		return -1;
	r = bpf_perf_event_output(c, &sampler_output, BPF_F_CURRENT_CPU, &s->record, size);
	/* A head whose event's own copy follows, which is counted by itself. */
	if (r && s->record.left && !(s->record.left & SAMPLER_NO_COPY))
		return 0;
	return sent(r);
}

/* Who was interrupted. */
FUSEE_FN void describe(struct sampler_record *r, __u64 ids)
{
	struct task_struct *task = bpf_get_current_task();

	r->pid = ids >> 32;
	r->tid = ids;
	if (kernel_read(&r->runtime, &task->se.sum_exec_runtime))
		r->runtime = 0;
}

#define LOOK(field) (*(volatile typeof(field) *)&(field))

/* The version of a process's table; odd: it is being written, is not that process's, or tells of
 * code that may not be there any more. */
FUSEE_FN __u32 version_of(__u32 element, __u64 id)
{
	struct sampler_process *p = fusee_bpf_map_lookup_elem(&sampler_processes, &element);
	__u32 version;

	if (!p)
		return 1;
	version = LOOK(p->version);
	return LOOK(p->id) == id && LOOK(p->changed) <= LOOK(p->as_of) ? version : 1;
}

/* Copies must not fill the ring: news of mappings go through it too, without which no stack can be
 * walked, and everything would be copied. */
FUSEE_FN int may_copy(struct scratch *s, const struct sampler_settings *o)
{
	__u32 round = LOOK(o->round);

	if (s->round != round)
		s->copied = 0;
	s->round = round;
	return s->copied / 1024 < LOOK(o->ration);
}

/* A tick whose stack nobody has. */
FUSEE_FN int leave_bare(struct sampler_context *c, struct scratch *s)
{
	s->record.left |= SAMPLER_NO_COPY;
	s->record.nuser = 0;
	bpf_get_current_comm(s->record.comm, sizeof(s->record.comm));
	return send(c, s, 0) ? 1 : 0;
}

/* It goes with a copy of the stack. Where that can't be had here the event sends its own; what it
 * can't tell of the thread goes before it. */
FUSEE_FN int leave(struct sampler_context *c, struct scratch *s, __u32 why)
{
	__u32 zero = 0;
	struct sampler_settings *o = fusee_bpf_map_lookup_elem(&sampler_settings, &zero);

	count(why);
	s->record.left = why;
	s->record.version = s->cut;
	s->record.nkernel = 0;
	s->record.nuser = SAMPLER_COPIED;
	if (o && why != SAMPLER_NO_REGISTERS && why != SAMPLER_CUT)
		o->unknown_ticks++;
	if (o && why != SAMPLER_NO_REGISTERS) {
		if (!may_copy(s, o))
			return leave_bare(c, s);
		if (o->copy && !send_copy(c, s, o->copy))
			return 0;
		s->copied += 65536;
	}
	s->record.nuser = 0;
	send(c, s, 0);
	return 1;
}

/* Walks the stack over what is known of this life. enum sampler_count. */
FUSEE_FN __u32 walk_life(struct sampler_context *c, struct scratch *s, struct sampler_life *life,
			 const int languages)
{
	struct fusee_unwind *u = state();
	__u32 version;
	int how;

	s->element = life->element;
	s->record.process = life->id;
	version = version_of(s->element, s->record.process);
	if (version & 1 || !u)
		return SAMPLER_CHANGED;
	how = walk(c, u, s, languages);
	if (how != WHOLE)
		return how == LEFT_CODE ? SAMPLER_UNKNOWN_CODE : SAMPLER_CUT;
	if (version != version_of(s->element, s->record.process))
		return SAMPLER_CHANGED;
	s->record.version = version;
	return SAMPLER_WALKED;
}

/* Walks this tick's stack, if it can; life may be NULL. enum sampler_count. */
FUSEE_FN __u32 walk_tick(struct sampler_context *c, struct scratch *s, struct sampler_life *life,
			 const int languages)
{
	if (user_regs(c, s) || s->regs.cs != USER_CS)
		return SAMPLER_NO_REGISTERS;
	return life ? walk_life(c, s, life, languages) : SAMPLER_UNKNOWN_PROCESS;
}

/* Was this CPU idle in such a time without a tick, or did its timer come late? */
FUSEE_FN int was_idle(__u64 gap, __u64 period)
{
	struct task_struct *task = bpf_get_current_task();
	__u64 runtime, before;

	if (gap <= SAMPLER_GAP_NS + 2 * period)
		return 0;
	return kernel_read(&runtime, &task->se.sum_exec_runtime) ||
	       kernel_read(&before, &task->se.prev_sum_exec_runtime) ||
	       runtime - before + SAMPLER_RUNTIME_NS < gap;
}

/* What came before in this stretch is over. */
FUSEE_FN void begin_stretch(struct sampler_grid *g, const struct sampler_settings *o, __u64 now)
{
	if (g->first)
		g->before += (g->last - g->first + g->period / 2) / g->period + 1;
	g->first = now;
	g->period = o->base;
	g->stretch = o->stretch;
}

/* The place of this tick among its CPU's. */
FUSEE_FN void note_tick(const struct sampler_settings *o)
{
	__u32 zero = 0;
	struct sampler_grid *g = fusee_bpf_map_lookup_elem(&sampler_grid, &zero);
	__u64 now = bpf_ktime_get_ns();

	if (!g)
		return;
	if (!g->first || !g->period || g->stretch != o->stretch ||
	    was_idle(now - g->last, g->period))
		begin_stretch(g, o, now);
	g->last = now;
	g->seen++;
}

/* Is this tick one of those that are taken of its process? What it stands for is in the record
 * then. */
FUSEE_FN int is_wanted(const struct sampler_context *c, struct sampler_record *r,
		       const struct sampler_settings *o, __u32 tgid)
{
	struct sampler_decision *d = fusee_bpf_map_lookup_elem(&sampler_decisions, &tgid);
	__u64 is = c->sample_period, want = d ? d->period : o->unknown;

	r->period = is;
	r->base = is == o->base;
	if (want != SAMPLER_ANY && want != is)
		return 0;
	if (!d || !d->keep)
		return 1;
	r->period = d->weight;
	return bpf_get_prandom_u32() < d->keep;
}

/* Sends what was walked. What the event is to be answered. */
FUSEE_FN int finish(struct sampler_context *c, struct scratch *s)
{
	bpf_get_current_comm(s->record.comm, sizeof(s->record.comm));
	s->record.left = 0;
	count(SAMPLER_WALKED);
	return send(c, s, s->at) ? 1 : 0;
}

/* Whose program walks stacks of this life. */
FUSEE_FN __u32 program_of(const struct sampler_life *life)
{
	__u32 element = life->element;
	struct sampler_process *p = fusee_bpf_map_lookup_elem(&sampler_processes, &element);

	return p ? p->program : 0;
}

SEC("perf_event")
int sampler_tick(struct sampler_context *c)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, how, program, zero = 0;
	struct sampler_settings *o = fusee_bpf_map_lookup_elem(&sampler_settings, &zero);
	struct scratch *s = scratch();
	struct sampler_life *life;

	if (!s || !o)
		return 1;
	if (o->base && c->sample_period == o->base)
		note_tick(o);
	if (!ids) {
		count(SAMPLER_IDLE);
		return 0;
	}
	if (!is_wanted(c, &s->record, o, tgid)) {
		count(SAMPLER_NOT_WANTED);
		return 0;
	}
	life = fusee_bpf_map_lookup_elem(&sampler_pids, &tgid);
	program = life ? program_of(life) : 0;
	if (program) /* what fails is walked to where the claim begins */
		bpf_tail_call(c, &sampler_programs, program - 1);
	describe(&s->record, ids);
	s->languages = s->cut = 0;
	how = walk_tick(c, s, life, 0);
	return how == SAMPLER_WALKED ? finish(c, s) : leave(c, s, how);
}

SEC("perf_event")
int sampler_language(struct sampler_context *c)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct scratch *s = scratch();
	struct sampler_life *life;
	__u32 tgid = ids >> 32, how;

	if (!s)
		return 1;
	life = fusee_bpf_map_lookup_elem(&sampler_pids, &tgid);
	describe(&s->record, ids);
	s->cut = 0;
	s->languages = 1;
	s->slot = life ? program_of(life) - 1 : 0;
	how = walk_tick(c, s, life, 1);
	if (how == SAMPLER_WALKED && send_emissions(c, &s->record))
		how = SAMPLER_CUT; /* as what follows it may be sent */
	if (how != SAMPLER_WALKED) {
		sampler_unsent(0);
		return leave(c, s, how);
	}
	return finish(c, s);
}

/* ---- lives ---- */

/* What is decided about the parent holds for the child too, until it is decided itself. */
FUSEE_FN void inherit_decision(__u32 from, __u32 to)
{
	struct sampler_decision *d = fusee_bpf_map_lookup_elem(&sampler_decisions, &from), copy;

	if (d) {
		copy = *d;
		bpf_map_update_elem(&sampler_decisions, &to, &copy, 0);
	} else {
		bpf_map_delete_elem(&sampler_decisions, &to);
	}
}

/* A child runs its parent's code, at the same addresses. */
SEC("raw_tp/sched_process_fork")
int sampler_fork(__u64 *args)
{
	struct task_struct *parent = (void *)args[0], *child = (void *)args[1];
	__u32 from, to, thread;
	struct sampler_life *life, copy;

	if (kernel_read(&from, &parent->tgid) || kernel_read(&to, &child->tgid) ||
	    kernel_read(&thread, &child->pid) || to != thread)
		return 0;
	inherit_decision(from, to);
	life = fusee_bpf_map_lookup_elem(&sampler_pids, &from);
	if (life) {
		copy = *life;
		copy.shared = 1;
		bpf_map_update_elem(&sampler_pids, &to, &copy, 0);
	} else {
		bpf_map_delete_elem(&sampler_pids, &to);
	}
	return 0;
}

/* Another program: nothing is known of its code. One that was sampled still is; the refusal of the
 * one before it, a shell maybe, says nothing of it. */
SEC("raw_tp/sched_process_exec")
int sampler_exec(__u64 *args)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct sampler_decision *d = fusee_bpf_map_lookup_elem(&sampler_decisions, &tgid);

	(void)args;
	if (d && d->period == SAMPLER_NONE)
		bpf_map_delete_elem(&sampler_decisions, &tgid);
	bpf_map_delete_elem(&sampler_pids, &tgid);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int sampler_exit(__u64 *args)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct task_struct *task = bpf_get_current_task();
	struct signal_struct *group;
	__u32 tgid = ids >> 32;
	int others;

	(void)args;
	if (tgid == (__u32)ids)
		bpf_map_delete_elem(&sampler_pids, &tgid);
	if (!kernel_read(&group, &task->signal) && !kernel_read(&others, &group->live.counter) &&
	    !others)
		bpf_map_delete_elem(&sampler_decisions, &tgid);
	return 0;
}

/* Does [lo, hi) hold code that we know? */
FUSEE_FN int holds_code(__u32 element, __u64 lo, __u64 hi)
{
	struct sampler_process *p = element_of(element, lo);
	__u32 low;

	if (!p)
		return 0;
	low = first_above(p, lo);
	return low < p->n && low < SAMPLER_MAPPINGS && p->mappings[low].lo < hi;
}

/*
 * Memory is given out at addresses that were free: where we know code, a library was there that is
 * gone, and another one may follow. From now on until user space knows better it walks that
 * process's stacks.
 */
SEC("raw_tp/vm_unmapped_area")
int sampler_mapped(__u64 *args)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, element, nobody = 0;
	struct vm_unmapped_area_info *info = (void *)args[1];
	struct sampler_life *life = fusee_bpf_map_lookup_elem(&sampler_pids, &tgid);
	struct sampler_process *p;
	__u64 at = args[0];
	unsigned long len;

	if (!life || at > (__u64)-4096)
		return 0;
	element = life->element;
	if (kernel_read(&len, &info->length) || !holds_code(element, at, at + len))
		return 0;
	if (life->shared) { /* the parent's code is where it was */
		bpf_map_delete_elem(&sampler_pids, &tgid);
		return 0;
	}
	p = fusee_bpf_map_lookup_elem(&sampler_processes, &element);
	if (p && p->id == life->id) {
		__u64 now = bpf_ktime_get_ns();

		LOOK(p->changed) = now;
		p = fusee_bpf_map_lookup_elem(&sampler_processes, &nobody);
		if (p)
			LOOK(p->changed) = now;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
