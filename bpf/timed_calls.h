/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The deciding half of uretprobes: the value of a call is the time from its begin to its return. A
 * call is known by its thread and by where its return address is, so recursion does not matter, and
 * what a longjmp has ended is replaced by the next call from the same place of the stack.
 */
#ifndef BPF_TIMED_CALLS_H
#define BPF_TIMED_CALLS_H

#include <fusee/unwinder.bpf.h>

#include "filter.h"
#include "kernel.h"
#include "probe_maps.h"
#include "returns.h"

#define MOST_RETURNS 64u /* of a thread, that the kernel keeps: MAX_URETPROBE_DEPTH */

/* The core sizes it. */
struct {
	__uint(type, 9 /* LRU_HASH */);
	__uint(max_entries, 1);
	__type(key, struct call_key);
	__type(value, struct call_begun);
} sampler_calls SEC(".maps");

/* The cookie says which of several probes it is: one function may end with a jump to another, and
 * both return at once. Before Linux 5.15 such a pair counts as one call. */
FUSEE_FN struct call_key call_key(struct user_regs *regs, __u64 at)
{
	struct call_key k = {.at = at, .tid = bpf_get_current_pid_tgid()};

	if (kernel_has(get_attach_cookie))
		k.probe = bpf_get_attach_cookie(regs);
	return k;
}

/* Will the kernel not see the return? */
FUSEE_FN int is_too_deep(void)
{
	struct uprobe_task *of = uprobes_of(bpf_get_current_task());
	unsigned int depth;

	return of && !kernel_read(&depth, &of->depth) && depth >= MOST_RETURNS;
}

/* Is the return address here replaced already? Then the function has jumped to its begin: of a call
 * that a longjmp has ended, the next call writes its own. */
FUSEE_FN int is_replaced(__u64 at)
{
	__u64 page = uprobe_page(bpf_get_current_task()), returns;

	return page && !fusee_bpf_probe_read_user(&returns, 8, (const void *)at) && returns == page;
}

/* The begin of a function. The kernel replaces the return address behind it. */
SEC("uprobe")
int sampler_probe_begin(struct user_regs *regs)
{
	struct probe_cpu *p = probe_selected();
	struct probe_place *at = place_of(regs);
	struct call_begun c = {}, *before;
	struct call_key k;
	int passes;

	if (!p)
		return 0;
	passes = filter_passes(at, regs);
	if (is_too_deep()) {
		count_at(p, at, passes ? PROBE_BEGUN : PROBE_FILTERED, 1);
		if (passes)
			count_at(p, at, PROBE_TOO_DEEP, 1);
		return 0;
	}
	k = call_key(regs, regs->rsp);
	before = fusee_bpf_map_lookup_elem(&sampler_calls, &k);
	if (before && is_replaced(regs->rsp)) {
		before->jumps++;
		count_at(p, at, PROBE_NESTED, 1);
		return 0;
	}
	count_at(p, at, passes ? PROBE_BEGUN : PROBE_FILTERED, 1);
	c.function = regs->rip;
	c.time = passes ? bpf_ktime_get_ns() : 0;
	bpf_map_update_elem(&sampler_calls, &k, &c, 0);
	return 0;
}

/* It has returned: pc and sp are the caller's. */
SEC("uprobe")
int sampler_probe_return(struct user_regs *regs)
{
	__u64 now = bpf_ktime_get_ns(), begun, value, function;
	struct probe_cpu *p = probe_selected();
	struct probe_place *at = place_of(regs);
	struct call_begun *c;
	struct call_key k;

	if (!p)
		return 0;
	k = call_key(regs, regs->rsp - 8);
	c = fusee_bpf_map_lookup_elem(&sampler_calls, &k);
	if (!c) {
		count_at(p, at, PROBE_UNKNOWN_BEGIN, 1);
		return 0;
	}
	if (c->jumps) {
		c->jumps--;
		return 0;
	}
	function = c->function;
	begun = c->time;
	value = now > begun ? now - begun : 1;
	bpf_map_delete_elem(&sampler_calls, &k);
	if (!begun)
		return 0;
	count_at(p, at, PROBE_ENDED, 1);
	if (filter_passes_return(at, regs, value))
		probe_hit(regs, p, at, value, function);
	else
		count_at(p, at, PROBE_FILTERED, 1);
	return 0;
}
#endif
