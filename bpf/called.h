/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Calls of addresses without code: of a null pointer, or of a library that was unmapped. The thread
 * has a signal for it, and the frame below the handler has such an address. Its caller's return
 * address lies at sp, if it came there by a call. What proves that: the instruction before that
 * address is a call, and leads there by the registers of this frame, which are those of the call.
 * Whoever came by a damaged return address, or by a jump out of a frame, has none of that.
 */
#ifndef BPF_CALLED_H
#define BPF_CALLED_H

#include <fusee/unwinder.bpf.h>

#define NULL_PAGE 4096u /* no code: vm.mmap_min_addr */

/* The value that a register of an instruction had at the call; number: as instructions have it. */
FUSEE_FN int at_call(const struct fusee_unwind *u, __u32 number, __u64 *value)
{
	/* rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi */
	__u32 reg = number < 8 ? 0x54673120u >> 4 * number & 15 : number;

	if (fusee_register(u, reg, value))
		return -1;
	if (reg == FUSEE_X86_RSP)
		*value += 8;
	return 0;
}

/* A call: its bytes from 0xff on, and how many; its prefix, or 0; the address of its end. */
struct call_code {
	__u64 code, end;
	__u32 len, rex;
};

/* Adds the registers of the call's memory operand to *at. Returns the bytes of the displacement,
 * with which the operand ends; -1: a register is not known. */
FUSEE_FN int operand_registers(const struct fusee_unwind *u, const struct call_code *c, __u64 *at)
{
	__u32 mode = c->code >> 14 & 3, base = c->code >> 8 & 7, index;
	int bytes = mode == 1 ? 1 : mode == 2 ? 4 : 0;
	__u64 value;

	if (base == 4) { /* an index and a base follow */
		base = c->code >> 16 & 7;
		index = (c->code >> 19 & 7) | (c->rex & 2) << 2;
		if (index != 4) {
			if (at_call(u, index, &value))
				return -1;
			*at += value << (c->code >> 22 & 3);
		}
		if (base == 5 && !mode)
			return 4;
	} else if (base == 5 && !mode) {
		*at += c->end;
		return 4;
	}
	if (at_call(u, base | (c->rex & 1) << 3, &value))
		return -1;
	*at += value;
	return bytes;
}

/* Does this call lead to pc? */
FUSEE_FN int leads_to(struct fusee_unwind *u, const struct call_code *c)
{
	__u32 before = (c->code >> 8 & 7) == 4 ? 3 : 2;
	__u64 at = 0, value;
	int bytes;

	if ((c->code >> 14 & 3) == 3)
		return c->len == 2 && !at_call(u, (c->code >> 8 & 7) | (c->rex & 1) << 3, &value) &&
		       value == u->pc;
	bytes = operand_registers(u, c, &at);
	if (bytes < 0 || before + (__u32)bytes != c->len)
		return 0;
	if (bytes == 1)
		at += (__u64)(__s64)(__s8)(c->code >> 8 * before);
	if (bytes == 4)
		at += (__u64)(__s64)(__s32)(c->code >> 8 * before);
	return !fusee_read(u, &value, 8, at) && value == u->pc;
}

/* Is there an entry of a PLT at this address, whose slot has pc? */
FUSEE_FN int entry_leads_to(struct fusee_unwind *u, __u64 at)
{
	__u64 code[2], value;

	if (at == u->pc)
		return 1;
	if (fusee_read(u, code, 16, at))
		return 0;
	if ((__u32)code[0] == 0xfa1e0ff3) { /* endbr64 */
		at += 4;
		code[0] = code[0] >> 32 | code[1] << 32;
		code[1] >>= 32;
	}
	if ((code[0] & 0xff) == 0xf2) { /* bnd */
		at += 1;
		code[0] = code[0] >> 8 | code[1] << 56;
	}
	if ((code[0] & 0xffff) != 0x25ff)
		return 0;
	at += 6 + (__u64)(__s64)(__s32)(code[0] >> 16);
	return !fusee_read(u, &value, 8, at) && value == u->pc;
}

/* Does a call end at this address that leads to pc? The byte before it may be its prefix or the end
 * of another instruction, so both are tried. */
FUSEE_FN int is_call_to_pc(struct fusee_unwind *u, __u64 end)
{
	struct call_code c = {.end = end};
	__u64 code;

	if (fusee_read(u, &code, 8, end - 8))
		return 0;
	if ((code >> 24 & 0xff) == 0xe8 &&
	    entry_leads_to(u, end + (__u64)(__s64)(__s32)(code >> 32)))
		return 1;
	for (__u32 i = 1; i < 7; i++) {
		__u32 prefix = code >> 8 * (i - 1) & 0xff;

		c.code = code >> 8 * i;
		c.len = 8 - i;
		c.rex = 0;
		if ((c.code & 0x38ff) != 0x10ff)
			continue;
		if (leads_to(u, &c))
			return 1;
		c.rex = prefix;
		if ((prefix & 0xf0) == 0x40 && leads_to(u, &c))
			return 1;
	}
	return 0;
}

/* pc has no code. If a call led to it, goes to the caller: FUSEE_NEXT, else FUSEE_STOP. A function
 * finds sp 8 bytes from a multiple of 16 (System V ABI); behind a return it is none. */
FUSEE_FN int step_out_of_call(struct fusee_unwind *u)
{
	__u64 end;

	if (!(u->flags & FUSEE_PC_EXACT) || (u->sp & 15) != 8 || fusee_read(u, &end, 8, u->sp) ||
	    !is_call_to_pc(u, end))
		return FUSEE_STOP;
	u->pc = end;
	u->sp += 8;
	u->valid_regs &= u->flags & FUSEE_FOLLOW ? FUSEE_CALLEE_SAVED : 0;
	u->flags &= ~(__u32)(FUSEE_PC_EXACT | FUSEE_FIRST | FUSEE_SIGNAL);
	return FUSEE_NEXT;
}
#endif
