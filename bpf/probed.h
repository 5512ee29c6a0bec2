/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Since Linux 6.18 a uprobe on a nop of five bytes is a call of a page [uprobes-trampoline]:
 *	0: push %rcx  1: push %r11  3: push %rax  4: mov $336, %rax  11: syscall
 *	13: pop %rax  14: pop %r11  16: pop %rcx  17: ret
 * A thread there is shown where it goes on, right behind the probed instruction. The code says
 * itself what it has pushed, so whose page it is does not matter.
 */
#ifndef BPF_PROBED_H
#define BPF_PROBED_H

#include <fusee/unwinder.bpf.h>

#define PROBE_PAGE 4096u
#define PROBE_RETURNS 17u /* offset of its last instruction */

/* Bytes that it has pushed before the instruction at this offset. */
FUSEE_FN __u32 probe_pushed(__u64 at)
{
	if (!at || at == PROBE_RETURNS)
		return 0;
	if (at == 1 || at == 16)
		return 8;
	return at == 3 || at == 14 ? 16 : 24;
}

/* Was the thread interrupted in such a page? */
FUSEE_FN int is_in_probe(struct fusee_unwind *u)
{
	__u64 at = u->pc & (PROBE_PAGE - 1), code[3];

	return at <= PROBE_RETURNS && u->flags & (FUSEE_PC_EXACT | FUSEE_FIRST) &&
	       !fusee_read(u, code, sizeof(code), u->pc - at) && code[0] == 0x50c0c74850534151ull &&
	       code[1] == 0x5b4158050f000001ull && (code[2] & 0xffff) == 0xc359;
}

/* Goes on behind the probed instruction. 0; -1: the thread is not in such a page, or its stack
 * cannot be read. */
FUSEE_FN int leave_probe(struct fusee_unwind *u)
{
	__u64 pushed = probe_pushed(u->pc & (PROBE_PAGE - 1)), pc;

	if (!is_in_probe(u) || fusee_read(u, &pc, 8, u->sp + pushed))
		return -1;
	u->pc = pc;
	u->sp += pushed + 8;
	u->flags |= FUSEE_PC_EXACT;
	u->valid_regs &= ~(__u64)(1u << FUSEE_X86_RAX | 1u << FUSEE_X86_RCX | 1u << FUSEE_X86_R11);
	return 0;
}
#endif
