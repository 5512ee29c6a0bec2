/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A walk that comes to the uprobe page goes on where the thread will. */
#ifndef BPF_REPLACED_H
#define BPF_REPLACED_H

#include <fusee/unwinder.bpf.h>

#include "returns.h"
#include "sample.h"

/*
 * Finds what the return address was that lay at this address: s->replaced.was. The next call of the
 * walk begins behind what this has found, since callers were called before, and looks at the others
 * if what it looks for is not there: a stack that was switched. 0 or -1. A global function, as in
 * walk.h.
 */
__attribute__((noinline)) int sampler_original(__u64 at)
{
	struct uprobe_task *of = uprobes_of(bpf_get_current_task());
	struct return_instance *r;
	struct scratch *s = scratch();
	__u64 stack;

	__asm__ volatile("" : "+r"(at));
	if (!of || !s)
		return -1;
	r = (void *)s->replaced.next;
	for (__u32 i = 0; i < 2 * WALK_RETURNS; i++) {
		if (!r && (i > WALK_RETURNS || kernel_read(&r, &of->return_instances) || !r))
			return -1;
		if (kernel_read(&stack, &r->stack))
			return -1;
		if (stack == at)
			break;
		if (kernel_read(&r, &r->next))
			return -1;
	}
	if (stack != at || kernel_read(&s->replaced.was, &r->orig_ret_vaddr) ||
	    kernel_read(&s->replaced.next, &r->next))
		return -1;
	return 0;
}

/*
 * What a probed function returns to. Up to Linux 6.10 it is a breakpoint; since then
 *	0: push %rax  1: push %rcx  2: push %r11  4: mov $.., %rax  11: syscall
 *	13: pop %r11  15: pop %rcx  16: ret
 * whose system call sets the saved rax to the return address.
 */
#define TRAMPOLINE_SYSCALLED 13u
#define BREAKPOINT 0xcc

/* Bytes that it has pushed before the instruction at this offset. */
FUSEE_FN __u32 trampoline_pushed(__u64 at)
{
	if (!at)
		return 0;
	if (at == 1 || at == 16)
		return 8;
	return at < 4 || at == 15 ? 16 : 24;
}

/* Reads the return address that the system call has written over the saved rax. Where that is still
 * there, the call is about to do so. 0 or -1. */
FUSEE_FN int written_return(struct scratch *s, __u64 at, __u64 rax)
{
	return fusee_bpf_probe_read_user(&s->replaced.was, 8, (const void *)at) ||
			       s->replaced.was == rax
		       ? -1
		       : 0;
}

/* A thread's place in the uprobe page. */
struct uprobe_place {
	__u64 page, pc, sp, rax;
};

/* Sets pc and sp to where the thread goes from there. 0 or -1. */
FUSEE_FN int leave_uprobe_page(struct scratch *s, struct uprobe_task *of, struct uprobe_place *p)
{
	__u64 at = p->pc - p->page, copy, pushed;
	__u8 first = 0;

	if (at >= UPROBE_SLOT) {
		if (kernel_read(&copy, &of->xol_vaddr) || p->pc - copy >= UPROBE_SLOT)
			return -1;
		copy = p->pc - copy;
		if (kernel_read(&p->pc, &of->vaddr))
			return -1;
		p->pc += copy;
		return 0;
	}
	if (fusee_bpf_probe_read_user(&first, 1, (const void *)p->page))
		return -1;
	pushed = first == BREAKPOINT ? 0 : trampoline_pushed(at);
	if (at >= TRAMPOLINE_SYSCALLED && !sampler_original(p->sp - 8))
		pushed = 0; /* in the system call, which has taken the registers back */
	else if (sampler_original(p->sp + pushed - 8) &&
		 (at < TRAMPOLINE_SYSCALLED || written_return(s, p->sp + pushed - 8, p->rax)))
		return -1;
	p->pc = s->replaced.was;
	p->sp += pushed;
	return 0;
}

/* Was the thread interrupted by a uprobe's breakpoint? Then pc is behind that, inside of the probed
 * instruction, which is still to be run. before: the byte before pc, which may also be what fills
 * the gap between two functions, or the end of another instruction. */
FUSEE_FN int at_breakpoint(__u64 pc, __u8 before)
{
	return before == BREAKPOINT && pc & 15 && uprobes_of(bpf_get_current_task());
}

/* Where pc is in the uprobe page: goes on at the original return address. STEP_AGAIN; STEP_STOPPED:
 * it is not known; STEP_UNKNOWN_CODE: pc is not in that page. A global function: it is rare. */
__attribute__((noinline)) int sampler_returned(__u32 unused)
{
	struct task_struct *task = bpf_get_current_task();
	struct uprobe_task *of = uprobes_of(task);
	struct fusee_unwind *u = fusee_current();
	struct scratch *s = scratch();
	struct uprobe_place p;

	__asm__ volatile("" : "+r"(unused));
	if (!of || !u || !s)
		return STEP_UNKNOWN_CODE;
	p = (struct uprobe_place){uprobe_page(task), u->pc, u->sp, u->regs[FUSEE_X86_RAX]};
	if (!p.page || p.pc - p.page >= UPROBE_PAGE)
		return STEP_UNKNOWN_CODE;
	if (u->flags & (FUSEE_PC_EXACT | FUSEE_FIRST)) {
		if (leave_uprobe_page(s, of, &p))
			return STEP_STOPPED;
		u->sp = p.sp;
		u->flags |= FUSEE_PC_EXACT;
	} else {
		if (p.pc != p.page || sampler_original(p.sp - 8))
			return STEP_STOPPED;
		p.pc = s->replaced.was;
	}
	u->pc = p.pc;
	return p.pc - p.page < UPROBE_PAGE ? STEP_STOPPED : STEP_AGAIN;
}

/* The thread whose stack is to be copied leaves the uprobe page, and a breakpoint, where it was
 * interrupted in the kernel. */
FUSEE_FN void leave_uprobe(struct scratch *s, struct uprobe_task *of, __u64 page, __u32 in_kernel)
{
	struct uprobe_place p = {page, s->regs.rip, s->regs.rsp, s->regs.rax};
	__u8 before = 0;

	if (p.pc - page < UPROBE_PAGE) {
		if (leave_uprobe_page(s, of, &p))
			return;
		s->regs.rip = p.pc;
		s->regs.rsp = p.sp;
	} else if (in_kernel && !fusee_bpf_probe_read_user(&before, 1, (const void *)(p.pc - 1)) &&
		   at_breakpoint(p.pc, before)) {
		s->regs.rip--;
	}
}

/* Fills the record of what the thread's return addresses were, for user space. Returns its n. */
__attribute__((noinline)) int sampler_returns(__u32 in_kernel)
{
	struct task_struct *task = bpf_get_current_task();
	struct uprobe_task *of = uprobes_of(task);
	struct scratch *s = scratch();
	struct record_returns *r;
	__u64 page;

	__asm__ volatile("" : "+r"(in_kernel));
	if (!of || !s)
		return 0;
	page = uprobe_page(task);
	if (!page)
		return 0;
	s->replaced.next = 0;
	leave_uprobe(s, of, page, in_kernel);
	r = &s->record.returns;
	r->page = page;
	r->n = copy_returns(of, r->at);
	r->pad = 0;
	return r->n;
}
#endif
