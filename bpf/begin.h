/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Begins a walk with the interrupted thread's registers. Test programs include this too. */
#ifndef BPF_BEGIN_H
#define BPF_BEGIN_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"

#define EM_X86_64 62 /* ELF e_machine (linux/elf-em.h) */

/* Was the thread interrupted in the kernel? A thread that comes back to its CPU, or to
 * a tracepoint, always was. */
#ifdef SAMPLER_IN_KERNEL
FUSEE_FN int is_in_kernel(const struct sampler_context *c)
{
	(void)c;
	return 1;
}
#else
FUSEE_FN int is_in_kernel(const struct sampler_context *c)
{
	__u64 cs = c->regs.cs;

	__asm__ volatile("" : "+r"(cs));
	return !(cs & 3);
}
#endif

/* All but rbp, rsp and rip. */
FUSEE_FN void regs_by_number(__u64 *to, const struct user_regs *r)
{
	to[FUSEE_X86_RAX] = r->rax;
	to[FUSEE_X86_RDX] = r->rdx;
	to[FUSEE_X86_RCX] = r->rcx;
	to[FUSEE_X86_RBX] = r->rbx;
	to[FUSEE_X86_RSI] = r->rsi;
	to[FUSEE_X86_RDI] = r->rdi;
	to[FUSEE_X86_R8] = r->r8;
	to[FUSEE_X86_R9] = r->r9;
	to[FUSEE_X86_R10] = r->r10;
	to[FUSEE_X86_R11] = r->r11;
	to[FUSEE_X86_R12] = r->r12;
	to[FUSEE_X86_R13] = r->r13;
	to[FUSEE_X86_R14] = r->r14;
	to[FUSEE_X86_R15] = r->r15;
}

/* The walk begins at the interrupted instruction. */
FUSEE_FN void begin(struct fusee_unwind *u, const struct user_regs *r)
{
	regs_by_number(u->regs, r);
	u->fp = r->rbp;
	u->sp = u->first_sp = r->rsp;
	u->pc = r->rip;
	u->valid_regs = 0xffffu & ~(1u << FUSEE_X86_RBP | 1u << FUSEE_X86_RSP);
	u->origin = FUSEE_CPU;
	u->machine = EM_X86_64;
	u->flags = FUSEE_PC_EXACT | FUSEE_FIRST;
	u->error = 0;
	u->slab_words = u->words = 0;
	u->tls = 0;
	u->absent = 0;
	fusee_window_reset();
}
#endif
