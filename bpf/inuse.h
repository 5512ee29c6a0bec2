/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Memory in use: allocations that are samples are followed until they are freed. Each has an id,
 * which its record carries, too; user space reads which ids are in use.
 *
 * Where a call has put its memory is known when it returns. The programs are those of uprobe
 * sessions (Linux 6.13): at a function's begin they say whether they are to run at its end, too,
 * so a call that is no sample costs no more than without. What is freed is removed when free() is
 * called, and what is allocated is added before malloc() has returned, so nothing else can have the
 * address between.
 *
 * The kernel replaces a return address for that, and no exception could pass. Where a session of
 * another process has a probe, it does so too, whatever is answered here. So `operator new` that
 * may throw has no session: the malloc() that it calls is what is sampled and followed.
 */
#ifndef BPF_INUSE_H
#define BPF_INUSE_H

#include "inuse_maps.h"
#include "probes.h"

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, INUSE_LIVE);
	__uint(map_flags, 1 /* NO_PREALLOC */);
	__type(key, struct inuse_key);
	__type(value, struct inuse_block);
} sampler_inuse_live SEC(".maps");

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, INUSE_CALLS);
	__uint(map_flags, 1 /* NO_PREALLOC */);
	__type(key, struct inuse_call_key);
	__type(value, struct inuse_call);
} sampler_inuse_calls SEC(".maps");

struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__uint(map_flags, 1024 /* MMAPABLE */);
	__type(key, __u32);
	__type(value, struct inuse_state);
} sampler_inuse_state SEC(".maps");

FUSEE_FN struct inuse_state *inuse_state(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_inuse_state, &zero);
}

/* What a session's program answers at a function's begin. */
#define INUSE_AT_END 0
#define INUSE_NO_END 1

/* ---- what is freed ---- */

/* The memory is freed. *was: which it was. 0, or -1: it is not followed. */
FUSEE_FN int inuse_remove(__u64 at, __u32 tgid, struct inuse_block *was)
{
	struct inuse_state *state = inuse_state();
	struct inuse_key key = {.at = at, .tgid = tgid};
	__u32 hash = inuse_hash(at, tgid);
	struct inuse_block *block;

	if (!state || !READ_ONCE(state->live[hash]))
		return -1;
	block = fusee_bpf_map_lookup_elem(&sampler_inuse_live, &key);
	if (!block)
		return -1;
	*was = *block;
	if (bpf_map_delete_elem(&sampler_inuse_live, &key))
		return -1;
	__sync_fetch_and_add(&state->live[hash], -1);
	return 0;
}

FUSEE_FN void inuse_add(__u64 at, __u32 tgid, const struct inuse_block *block)
{
	struct inuse_state *state = inuse_state();
	struct inuse_key key = {.at = at, .tgid = tgid};
	__u32 hash = inuse_hash(at, tgid);

	if (!state)
		return;
	__sync_fetch_and_add(&state->live[hash], 1);
	if (!bpf_map_update_elem(&sampler_inuse_live, &key, block, 1 /* unless there is one */))
		return;
	/* of a process before, or freed by a function without a probe; or there is no room */
	__sync_fetch_and_add(&state->live[hash], -1);
	if (bpf_map_update_elem(&sampler_inuse_live, &key, block, 2 /* if there is one */))
		__sync_fetch_and_add(&state->full, 1);
}

/* The begin of a function that frees its first argument. */
SEC("uprobe")
int sampler_inuse_free(struct user_regs *regs)
{
	struct inuse_block was;
	__u64 at = regs->rdi;

	if (at)
		inuse_remove(at, bpf_get_current_pid_tgid() >> 32, &was);
	return INUSE_NO_END;
}

/* ---- what is allocated ---- */

/* The next id, not 0; after the last, the first again. 0: there is no map. */
FUSEE_FN __u32 inuse_id(void)
{
	struct inuse_state *state = inuse_state();
	__u32 id = state ? (__sync_fetch_and_add(&state->ids, 1) + 1) & INUSE_IDS : 0;

	return state && !id ? INUSE_IDS : id;
}

/* What identifies the process's memory; 0: there is no room. */
FUSEE_FN __u32 inuse_space(__u32 tgid)
{
	__u32 *space = fusee_bpf_map_lookup_elem(&sampler_spaces, &tgid), id;

	if (space)
		return *space;
	id = inuse_id();
	if (id)
		bpf_map_update_elem(&sampler_spaces, &tgid, &id, 1 /* unless there is one */);
	space = fusee_bpf_map_lookup_elem(&sampler_spaces, &tgid);
	return space ? *space : 0;
}

/* Follows the call to its end. 0 or -1. */
FUSEE_FN int inuse_await(const struct user_regs *regs, const struct inuse_call *call)
{
	struct inuse_call_key key = {.ids = bpf_get_current_pid_tgid(), .sp = regs->rsp};
	struct inuse_state *state;

	if (!bpf_map_update_elem(&sampler_inuse_calls, &key, call, 0))
		return 0;
	state = inuse_state();
	if (state && call->block.id)
		__sync_fetch_and_add(&state->full, 1);
	return -1;
}

/* The end of a followed call. */
FUSEE_FN int inuse_returned(const struct user_regs *regs)
{
	struct inuse_call_key key = {.ids = bpf_get_current_pid_tgid(), .sp = regs->rsp - 8};
	struct inuse_call *known = fusee_bpf_map_lookup_elem(&sampler_inuse_calls, &key), call;
	__u32 tgid = key.ids >> 32;
	__u64 at = regs->rax;

	if (!known)
		return 0;
	call = *known;
	if (call.where && (at || fusee_bpf_probe_read_user(&at, 8, (const void *)call.where)))
		at = 0; /* posix_memalign() has failed */
	if (at && call.block.id)
		inuse_add(at, tgid, &call.block);
	else if (!at && call.old)
		inuse_add(call.old, tgid, &call.was);
	bpf_map_delete_elem(&sampler_inuse_calls, &key);
	return 0;
}

/* The last `new` has called no malloc(). */
FUSEE_FN void inuse_drop(struct probe_cpu *p)
{
	struct inuse_state *state = inuse_state();

	if (p->awaited.tid && state)
		__sync_fetch_and_add(&state->unreturned, 1);
	p->awaited.tid = 0;
}

/* Is this call in the last `new`? */
FUSEE_FN int inuse_is_awaited(const struct alloc_call *c, const struct probe_cpu *p)
{
	return p->awaited.tid == c->tid && c->sp < p->awaited.sp;
}

/* The running call. */
FUSEE_FN void inuse_begin(const struct user_regs *regs, __u64 value, struct alloc_call *c)
{
	c->value = value;
	c->tid = bpf_get_current_pid_tgid();
	c->sp = regs->rsp;
	c->lo = regs->rip;
	if (fusee_bpf_probe_read_user(&c->returns, 8, (const void *)c->sp))
		c->returns = 0;
}

/* Is a call of so many bytes a sample? */
FUSEE_FN int inuse_is_chosen(__u64 value)
{
	struct sampler_settings *o = settings();
	__u64 period = o ? READ_ONCE(o->probe_period) : 0;

	return period && (value >= period || bpf_get_prandom_u32() * period < value << 32);
}

/* The begin of `operator new` that may throw, which this program never has return to the kernel. */
SEC("uprobe")
int sampler_inuse_throws(struct user_regs *regs)
{
	struct probe_cpu *p = probe_selected();
	struct alloc_call c = {};

	if (!p)
		return 0;
	c.ranked = bpf_get_attach_cookie(regs) & 0xff;
	inuse_begin(regs, regs->rdi, &c);
	if (inuse_is_awaited(&c, p) || alloc_is_jump(&c, &p->awaited))
		return 0;
	inuse_drop(p);
	if (inuse_is_chosen(c.value))
		p->awaited = c;
	return 0;
}

/* Follows a call to its end. Returns what the program answers. */
FUSEE_FN int inuse_follow(const struct user_regs *regs, __u32 kind, struct inuse_call *call)
{
	call->where = kind == ALLOC_POSIX ? regs->rdi : 0;
	if ((call->block.id || call->old) && !inuse_await(regs, call))
		return INUSE_AT_END;
	call->block.id = 0;
	return INUSE_NO_END;
}

/* A call that asks for memory, and is a sample if chance says so. call: what it frees. */
FUSEE_FN int inuse_hit(struct user_regs *regs, struct probe_cpu *p, const struct alloc_call *c,
		       struct inuse_call *call)
{
	struct sampler_settings *o = settings();
	__u64 period = o ? READ_ONCE(o->probe_period) : 0;
	struct hit hit = {.value = c->value};
	int chosen = inuse_is_chosen(c->value);

	count_hit(p, PROBE_HITS, 1);
	count_hit(p, PROBE_VALUE, c->value);
	if (chosen) {
		call->block.space = inuse_space(bpf_get_current_pid_tgid() >> 32);
		call->block.id = call->block.space ? inuse_id() : 0;
	}
	hit.answer = inuse_follow(regs, ALLOC_KIND(c->ranked), call);
	if (!chosen)
		return hit.answer;
	hit.weight = call->block.id      ? RECORD_FOLLOWED(call->block.id, period)
		     : c->value < period ? period
					 : c->value;
	probe_take(regs, p, &hit);
	return hit.answer;
}

/* What realloc() is called with is freed, unless it fails; to 0 bytes, it is freed in any case. */
FUSEE_FN void inuse_end_old(const struct user_regs *regs, __u32 kind, struct inuse_call *call)
{
	__u64 at = regs->rdi, size = regs->rsi;

	if ((kind != ALLOC_REALLOC && kind != ALLOC_REALLOCARRAY) || !at ||
	    inuse_remove(at, bpf_get_current_pid_tgid() >> 32, &call->was))
		return;
	if (kind == ALLOC_REALLOCARRAY && !regs->rdx)
		size = 0;
	call->old = size ? at : 0;
}

/* The begin of an allocator's function, or the end of a call that is followed. */
SEC("uprobe")
int sampler_inuse_alloc(struct user_regs *regs)
{
	struct alloc_call c = {};
	struct inuse_call call = {};
	struct probe_cpu *p;
	__u64 cookie;
	__u32 kind;

	if (bpf_get_func_ip(regs) != regs->rip)
		return inuse_returned(regs);
	cookie = bpf_get_attach_cookie(regs);
	c.ranked = cookie & 0xff;
	c.bytes = cookie >> 8;
	kind = ALLOC_KIND(c.ranked);
	inuse_end_old(regs, kind, &call);
	p = probe_selected();
	if (!p) /* what was allocated while it was selected may be freed now */
		return call.old && !inuse_await(regs, &call) ? INUSE_AT_END : INUSE_NO_END;
	inuse_begin(regs, alloc_bytes(regs, kind), &c);
	if (inuse_is_awaited(&c, p))
		p->awaited.tid = 0;
	else
		inuse_drop(p);
	if (!c.value)
		return inuse_follow(regs, kind, &call);
	if (alloc_note(&c, p)) {
		count_hit(p, PROBE_NESTED, 1);
		return inuse_follow(regs, kind, &call);
	}
	return inuse_hit(regs, p, &c, &call);
}
#endif
