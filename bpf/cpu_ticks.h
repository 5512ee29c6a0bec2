/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counts the ticks of each CPU's own event, so that user space knows how many were due. */
#ifndef BPF_CPU_TICKS_H
#define BPF_CPU_TICKS_H

#include <fusee/unwinder.bpf.h>

#include "kernel.h"
#include "maps.h"

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_ticks);
} sampler_cpu_ticks SEC(".maps");

/* Was this CPU idle during such a gap? Otherwise its timer fired late. */
FUSEE_FN int was_idle(__u64 gap, __u64 period)
{
	struct task_struct *task = bpf_get_current_task();
	__u64 runtime, before;

	if (gap <= GAP_NS + 2 * period)
		return 0;
	return kernel_read(&runtime, &task->se.sum_exec_runtime) ||
	       kernel_read(&before, &task->se.prev_sum_exec_runtime) ||
	       runtime - before + RUNTIME_AGE_NS < gap;
}

/* Adds the ticks of the stretch that has ended to `before`. */
FUSEE_FN void begin_stretch(struct cpu_ticks *t, const struct sampler_settings *o, __u64 now)
{
	if (t->first)
		t->before += (t->last - t->first + t->period / 2) / t->period + 1;
	t->first = now;
	t->period = o->cpu_period;
	t->stretch = o->stretch;
}

FUSEE_FN void note_cpu_tick(const struct sampler_settings *o)
{
	__u32 zero = 0;
	struct cpu_ticks *t = fusee_bpf_map_lookup_elem(&sampler_cpu_ticks, &zero);
	__u64 now = bpf_ktime_get_ns();

	if (!t)
		return;
	if (!t->first || !t->period || t->stretch != o->stretch ||
	    was_idle(now - t->last, t->period))
		begin_stretch(t, o, now);
	t->last = now;
	t->seen++;
}
#endif
