/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The hit that is walked on a CPU, and the registers of the thread whose it is. */
#ifndef BPF_PROBE_CPU_H
#define BPF_PROBE_CPU_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "probe_maps.h"
#include "sample.h"

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct probe_cpu);
} sampler_probe_cpus SEC(".maps");

FUSEE_FN struct probe_cpu *probe_cpu(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&sampler_probe_cpus, &zero);
}

/* At a return the thread is back in the caller. The stack is that of the call: it begins at the
 * function's begin, as if it had just been called. Registers that a call keeps are the caller's
 * there, too. The word of the stack with the return address may have been overwritten by now. */
FUSEE_FN void to_returned(struct scratch *s)
{
	struct probe_cpu *p = probe_cpu();

	s->replaced.returned = 0;
	if (!p || !p->function)
		return;
	s->replaced.returned = s->regs.rip;
	s->regs.rip = p->function;
	s->regs.rsp -= 8;
}
#endif
