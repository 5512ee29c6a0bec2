/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* An entry program over the unwinders' steps, for tool_bpf: at each sample it walks the user stack
 * and hands over what it found, with what a native walk needs to do the same. */
#include <fusee/unwinder.bpf.h>

#include "walk.h"

extern int fusee_step_dwarf(__u32 slot);
extern int fusee_step_framepointer(__u32 slot);

static void *(*ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *data, __u64 flags) = (void *)132;

/* struct bpf_perf_event_data of x86-64 */
struct sample {
	__u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax;
	__u64 rip, cs, eflags, rsp, ss;
};

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

FUSEE_FN struct fusee_unwind *state(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&fusee_state, &zero);
}

/* Fills what a step wants to know of the mapping that holds this frame's code. -1: none does. */
__attribute__((noinline)) int walk_locate(__u32 unused)
{
	struct fusee_unwind *u = state();
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
		u->offset = u->pc - m->bias;
		u->slab = m->slab;
		u->slab_words = m->slab_words;
		return 0;
	}
	return -1;
}

FUSEE_FN void begin(struct fusee_unwind *u, const struct sample *s, struct walk_record *r)
{
	r->regs[FUSEE_X86_RAX] = u->regs[FUSEE_X86_RAX] = s->rax;
	r->regs[FUSEE_X86_RDX] = u->regs[FUSEE_X86_RDX] = s->rdx;
	r->regs[FUSEE_X86_RCX] = u->regs[FUSEE_X86_RCX] = s->rcx;
	r->regs[FUSEE_X86_RBX] = u->regs[FUSEE_X86_RBX] = s->rbx;
	r->regs[FUSEE_X86_RSI] = u->regs[FUSEE_X86_RSI] = s->rsi;
	r->regs[FUSEE_X86_RDI] = u->regs[FUSEE_X86_RDI] = s->rdi;
	r->regs[FUSEE_X86_R8] = u->regs[FUSEE_X86_R8] = s->r8;
	r->regs[FUSEE_X86_R9] = u->regs[FUSEE_X86_R9] = s->r9;
	r->regs[FUSEE_X86_R10] = u->regs[FUSEE_X86_R10] = s->r10;
	r->regs[FUSEE_X86_R11] = u->regs[FUSEE_X86_R11] = s->r11;
	r->regs[FUSEE_X86_R12] = u->regs[FUSEE_X86_R12] = s->r12;
	r->regs[FUSEE_X86_R13] = u->regs[FUSEE_X86_R13] = s->r13;
	r->regs[FUSEE_X86_R14] = u->regs[FUSEE_X86_R14] = s->r14;
	r->regs[FUSEE_X86_R15] = u->regs[FUSEE_X86_R15] = s->r15;
	r->regs[FUSEE_X86_RBP] = u->fp = s->rbp;
	r->regs[FUSEE_X86_RSP] = u->sp = s->rsp;
	r->regs[FUSEE_X86_RIP] = u->pc = s->rip;
	u->valid_regs = 0xffffu & ~(1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP);
	u->origin = FUSEE_CPU;
	u->machine = 62;
	u->flags = FUSEE_PC_EXACT | FUSEE_FIRST;
	u->error = 0;
}

FUSEE_FN void copy_stack(struct walk_record *r, __u64 sp)
{
	__u32 at = sp & (WALK_PAGE - 1), i;

	r->pages = 0;
	sp -= at;
	if (fusee_bpf_probe_read_user(r->stack + at, WALK_PAGE - at, (const void *)(sp + at)))
		return;
	for (i = 1; i < WALK_PAGES; i++)
		if (fusee_bpf_probe_read_user(r->stack + i * WALK_PAGE, WALK_PAGE,
					      (const void *)(sp + i * WALK_PAGE)))
			break;
	r->pages = i;
}

/* The steps of one stack. A loop with its state in a map: verified once for each unwinder, not for
 * each frame. */
FUSEE_FN void walk_user(struct fusee_unwind *u, struct walk_record *r)
{
	__u32 i;

	r->end.unwinder = WALK_NOBODY;
	r->end.error = 2;
	for (i = 0; i < WALK_MAX_FRAMES; i++) {
		struct walk_frame *f = &r->frames[i & (WALK_MAX_FRAMES - 1)];
		__u32 who = WALK_DWARF;
		int next;

		if (walk_locate(0)) {
			r->end.error = 0;
			break;
		}
		f->pc = u->pc;
		f->sp = u->sp;
		f->fp = u->fp;
		f->flags = u->flags;
		u->flags &= ~(__u32)FUSEE_GUESSED;
		next = fusee_step_dwarf(0);
		if (next == FUSEE_PASS) {
			who = WALK_FRAMEPOINTER;
			next = fusee_step_framepointer(0);
		}
		if (next != FUSEE_NEXT) {
			r->end.unwinder = next == FUSEE_PASS ? WALK_NOBODY : who;
			r->end.error = next == FUSEE_PASS ? 1 : u->error;
			i++;
			break;
		}
		u->flags &= ~(__u32)(FUSEE_SIGNAL | FUSEE_FIRST | FUSEE_INEXPRESSIBLE);
	}
	r->n = i;
}

SEC("perf_event")
int walk(const struct sample *s)
{
	struct fusee_unwind *u = state();
	struct walk_record *r;

	if (!u || !(s->cs & 3))
		return 0;
	count(0);
	r = ringbuf_reserve(&walk_ring, sizeof(*r), 0);
	if (!r) {
		count(1);
		return 0;
	}
	fusee_window_reset();
	begin(u, s, r);
	copy_stack(r, s->rsp);
	walk_user(u, r);
	ringbuf_submit(r, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
