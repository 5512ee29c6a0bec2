/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* An entry program over the unwinders' steps, for tool_bpf: at each sample it walks the user stack
 * and hands over what it found, with what a native walk needs to do the same. */
#include "begin.h"
#include "walk.h"

extern int fusee_step_dwarf(__u32 slot);
extern int fusee_step_framepointer(__u32 slot);

static void *(*ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *data, __u64 flags) = (void *)132;

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk_mappings);
} walk_maps SEC(".maps");

struct {
	__uint(type, 27 /* RINGBUF */);
	__uint(max_entries, 16 << 20);
} walk_ring SEC(".maps");

/* [0] samples in user mode, [1] those that found the ring full */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} walk_counts SEC(".maps");

FUSEE_FN void count(__u32 what)
{
	__u64 *n = fusee_bpf_map_lookup_elem(&walk_counts, &what);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/* Finds the mapping that holds this frame's code. -1: none does. */
__attribute__((noinline)) int walk_find(__u32 unused)
{
	struct fusee_unwind *u = fusee_current();
	struct walk_mappings *maps;
	__u32 zero = 0;
	__u64 at;

	(void)unused;
	maps = fusee_bpf_map_lookup_elem(&walk_maps, &zero);
	if (!u || !maps)
		return -1;
	at = u->flags & FUSEE_PC_EXACT ? u->pc : u->pc - 1;
	for (__u32 i = 0; i < WALK_MAX_MAPPINGS; i++) {
		struct walk_mapping *m = &maps->mapping[i];

		if (i >= maps->n)
			break;
		if (at < m->lo || at >= m->hi)
			continue;
		u->map_lo = m->lo;
		u->map_hi = m->hi;
		u->bias = m->bias;
		u->slab = m->slab;
		u->slab_words = m->slab_words;
		u->slab_id = m->slab_id;
		return 0;
	}
	return -1;
}

/* Sets what a step reads of the mapping that holds this frame's code. It is most often the mapping
 * of the frame before, which is found without a call. -1: no mapping holds it. */
FUSEE_FN int locate(struct fusee_unwind *u)
{
	__u64 at = u->pc - !(u->flags & FUSEE_PC_EXACT);

	if (at - u->map_lo >= u->map_hi - u->map_lo && walk_find(0))
		return -1;
	u->offset = u->pc - u->bias;
	return 0;
}

/* locate() has no frame before the first. */
FUSEE_FN void begin_walk(struct fusee_unwind *u, const struct sampler_context *s)
{
	begin(u, &s->regs);
	u->map_lo = u->map_hi = 0;
}

FUSEE_FN void copy_regs(struct walk_record *r, const struct fusee_unwind *u)
{
	for (int i = 0; i < FUSEE_X86_RIP; i++)
		r->regs[i] = u->regs[i];
	r->regs[FUSEE_X86_RBP] = u->fp;
	r->regs[FUSEE_X86_RSP] = u->sp;
	r->regs[FUSEE_X86_RIP] = u->pc;
}

FUSEE_FN void copy_stack(struct walk_record *r, __u64 sp)
{
	__u32 at = sp & (WALK_PAGE - 1), i;

	r->pages = 0;
	sp -= at;
	at -= at < 128 ? at : 128; /* the red zone */
	if (fusee_bpf_probe_read_user(r->stack + at, WALK_PAGE - at, (const void *)(sp + at)))
		return;
	for (i = 1; i < WALK_PAGES; i++)
		if (fusee_bpf_probe_read_user(r->stack + i * WALK_PAGE, WALK_PAGE,
					      (const void *)(sp + i * WALK_PAGE)))
			break;
	r->pages = i;
}

/* Notes the frame's registers and its CFA. */
FUSEE_FN void note_registers(struct fusee_unwind *u, struct walk_frame *f)
{
	__u32 flags = u->flags;

	f->valid_regs = u->valid_regs;
	f->regs[0] = u->regs[FUSEE_X86_RBX];
	for (int i = 1; i < 5; i++)
		f->regs[i] = u->regs[FUSEE_X86_R12 + i - 1];
	u->cfa = 0;
	u->flags |= FUSEE_CFA_ONLY;
	fusee_step_dwarf(0);
	u->flags = flags;
	f->cfa = u->cfa;
}

/* One step by the unwinders in order. *unwinder: the last that was called. */
FUSEE_FN int step(struct fusee_unwind *u, __u32 *unwinder)
{
	int next;

	u->flags &= ~(__u32)FUSEE_GUESSED;
	*unwinder = WALK_DWARF;
	next = fusee_step_dwarf(0);
	if (next == FUSEE_PASS) {
		*unwinder = WALK_FRAMEPOINTER;
		next = fusee_step_framepointer(0);
	}
	if (next == FUSEE_NEXT)
		u->flags &= ~(__u32)(FUSEE_SIGNAL | FUSEE_FIRST | FUSEE_INEXPRESSIBLE);
	return next;
}

/* Unwinds one stack, in a loop whose state is in a map, so that a step is verified once for each
 * unwinder and not for each frame. */
FUSEE_FN void walk_user(struct fusee_unwind *u, struct walk_record *r)
{
	__u32 i;

	r->end.unwinder = WALK_NOBODY;
	r->end.error = 2;
	for (i = 0; i < WALK_MAX_FRAMES; i++) {
		struct walk_frame *f = &r->frames[i & (WALK_MAX_FRAMES - 1)];
		__u32 unwinder;
		int next;

		if (locate(u)) {
			r->end.error = 0;
			break;
		}
		f->pc = u->pc;
		f->sp = u->sp;
		f->fp = u->fp;
		f->flags = u->flags;
		if (u->flags & FUSEE_FOLLOW)
			note_registers(u, f);
		next = step(u, &unwinder);
		if (next != FUSEE_NEXT) {
			r->end.unwinder = next == FUSEE_PASS ? WALK_NOBODY : unwinder;
			r->end.error = next == FUSEE_PASS ? 1 : u->error;
			i++;
			break;
		}
	}
	r->n = i;
}

SEC("perf_event")
int walk(const struct sampler_context *s)
{
	struct fusee_unwind *u = fusee_current();
	struct walk_mappings *maps;
	struct walk_record *r;
	__u32 zero = 0;

	if (!u || !(s->regs.cs & 3))
		return 0;
	count(0);
	r = ringbuf_reserve(&walk_ring, sizeof(*r), 0);
	if (!r) {
		count(1);
		return 0;
	}
	begin_walk(u, s);
	maps = fusee_bpf_map_lookup_elem(&walk_maps, &zero);
	if (maps && maps->follow)
		u->flags |= FUSEE_FOLLOW;
	copy_regs(r, u);
	copy_stack(r, s->regs.rsp);
	walk_user(u, r);
	ringbuf_submit(r, 0);
	return 0;
}

/* ---- timed: a stack walked and counted, beside the kernel's own way by frame pointers ---- */

static long (*get_stackid)(const void *ctx, void *map, __u64 flags) = (void *)27;

#define USER_STACK (1 << 8)
#define STACK_DEPTH 127 /* PERF_MAX_STACK_DEPTH */
#define STACKS 16384    /* distinct stacks */
#define PROBED 4

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__type(key, __u32);
	__type(value, struct walk_times);
} walk_times SEC(".maps");

/* The stack of this CPU, a word a frame, and the hash of it. */
struct stack {
	__u64 hash;
	__u32 n, pad;
	__u64 word[WALK_MAX_FRAMES];
};

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
} walk_stack SEC(".maps");

struct counts {
	struct {
		__u64 hash, n;
	} of[STACKS];
};

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} walk_counted SEC(".maps");

struct {
	__uint(type, 7 /* STACK_TRACE */);
	__uint(max_entries, STACKS);
	__uint(key_size, 4);
	__uint(value_size, STACK_DEPTH * 8);
} peer_stacks SEC(".maps");

struct peer_key {
	__u32 pid;
	__s32 stack;
};

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, STACKS);
	__type(key, struct peer_key);
	__type(value, __u64);
} peer_counts SEC(".maps");

FUSEE_FN struct walk_times *note_time(__u64 from)
{
	__u32 zero = 0;
	struct walk_times *t = fusee_bpf_map_lookup_elem(&walk_times, &zero);

	if (t)
		t->ns[__sync_fetch_and_add(&t->n, 1) & (WALK_TIMES - 1)] =
			(__u32)(bpf_ktime_get_ns() - from);
	return t;
}

/* The frames as (table, offset), hashed on the way: what a profiler keeps of them. What the loop
 * carries lies in the map: in registers the verifier would follow each value of it. */
FUSEE_FN void walk_to_count(struct fusee_unwind *u, struct stack *stack)
{
	volatile __u64 *hash = &stack->hash;
	__u32 unwinder;

	*hash = 0;
	for (__u32 i = 0; i < WALK_MAX_FRAMES; i++) {
		__u64 word;

		if (locate(u))
			break;
		word = u->offset | u->slab << 40;
		stack->word[i & (WALK_MAX_FRAMES - 1)] = word;
		word = (*hash ^ word) * 0x9e3779b97f4a7c15ull;
		*hash = word ^ word >> 32;
		*(volatile __u32 *)&stack->n = i + 1;
		if (step(u, &unwinder) != FUSEE_NEXT)
			break;
	}
}

/* Not 0: it is the first such stack. */
FUSEE_FN int count_stack(__u64 hash)
{
	__u32 zero = 0;
	struct counts *c = fusee_bpf_map_lookup_elem(&walk_counted, &zero);

	for (__u32 i = 0; c && i < PROBED; i++) {
		__u32 at = ((__u32)hash & (STACKS - PROBED)) + i;
		int first = !c->of[at].hash;

		if (!first && c->of[at].hash != hash)
			continue;
		c->of[at].hash = hash;
		__sync_fetch_and_add(&c->of[at].n, 1);
		return first;
	}
	count(1);
	return 1;
}

SEC("perf_event")
int time_walk(const struct sampler_context *s)
{
	__u64 from = bpf_ktime_get_ns();
	struct fusee_unwind *u = fusee_current();
	__u32 zero = 0;
	struct stack *stack = fusee_bpf_map_lookup_elem(&walk_stack, &zero);
	struct walk_times *t;
	int first;

	if (!u || !stack || !(s->regs.cs & 3))
		return 0;
	begin_walk(u, s);
	walk_to_count(u, stack);
	first = count_stack(stack->hash);
	t = note_time(from);
	if (t) {
		t->frames += stack->n;
		t->first += (__u32)first;
	}
	return 0;
}

SEC("perf_event")
int time_peer(const struct sampler_context *s)
{
	__u64 from = bpf_ktime_get_ns(), one = 1, *n;
	struct peer_key key = {0};

	if (!(s->regs.cs & 3))
		return 0;
	key.pid = bpf_get_current_pid_tgid() >> 32;
	key.stack = (__s32)get_stackid(s, &peer_stacks, USER_STACK);
	n = fusee_bpf_map_lookup_elem(&peer_counts, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&peer_counts, &key, &one, 0);
	note_time(from);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
