/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Counts, where they happen, the ticks of all cpu-clock events: at each of their timers' expiry,
 * before the event does anything, and by how many periods the kernel moved the timer on afterwards.
 * While a system call on BPF maps runs on a CPU, the kernel runs no BPF program there: those ticks
 * are seen by the distance of the next tick alone.
 */
#include <fusee/unwinder.bpf.h>

#include "../../bpf/kernel.h"
#include "ticks.h"

struct timerqueue_node {
	__s64 expires;
} KERNEL_TYPE;

struct hrtimer {
	struct timerqueue_node node;
	void *function;
} KERNEL_TYPE;

struct hw_perf_event {
	struct hrtimer hrtimer;
	__u64 sample_period;
} KERNEL_TYPE;

struct perf_event {
	struct hw_perf_event hw;
	struct perf_event *parent; /* that it was inherited from */
	struct task_struct *owner;
} KERNEL_TYPE;

/* [0]: the address of perf_swevent_hrtimer() */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ticks_function SEC(".maps");

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, 32768);
	__type(key, struct ticks_key);
	__type(value, struct ticks_count);
} ticks_counts SEC(".maps");

/* When each timer is to come next, and how often its CPU had become idle until then. */
struct planned {
	__s64 expires;
	__u64 idles;
};

struct {
	__uint(type, 1 /* HASH */);
	__uint(max_entries, 32768);
	__type(key, __u64); /* the timer's address */
	__type(value, struct planned);
} ticks_planned SEC(".maps");

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ticks_idles SEC(".maps");

/* The expiry at hand. */
struct at_hand {
	__u64 timer; /* 0: none of ours */
	__s64 expires;
	struct ticks_key key;
};

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct at_hand);
} ticks_at_hand SEC(".maps");

FUSEE_FN struct at_hand *at_hand(void)
{
	__u32 zero = 0;

	return fusee_bpf_map_lookup_elem(&ticks_at_hand, &zero);
}

FUSEE_FN void describe(struct at_hand *a, struct perf_event *event)
{
	struct perf_event *parent = 0;
	struct task_struct *owner = 0;

	a->key = (struct ticks_key){.target = bpf_get_current_pid_tgid() >> 32,
				    .cpu = bpf_get_smp_processor_id()};
	kernel_read(&a->key.period, &event->hw.sample_period);
	kernel_read(&parent, &event->parent);
	if (parent)
		event = parent;
	kernel_read(&owner, &event->owner);
	if (owner)
		kernel_read(&a->key.owner, &owner->tgid);
}

SEC("raw_tp/hrtimer_expire_entry")
int ticks_entry(__u64 *args)
{
	struct hrtimer *timer = (void *)args[0];
	struct at_hand *a = at_hand();
	void *function = 0;
	__u32 zero = 0;
	__u64 *expected = fusee_bpf_map_lookup_elem(&ticks_function, &zero);

	if (!a || !expected)
		return 0;
	a->timer = 0;
	if (kernel_read(&function, &timer->function) || (__u64)function != *expected ||
	    kernel_read(&a->expires, &timer->node.expires))
		return 0;
	a->timer = (__u64)timer;
	describe(a, (void *)((char *)timer -
			     __builtin_preserve_field_info(((struct perf_event *)0)->hw.hrtimer,
							   0 /* its offset */)));
	return 0;
}

/* Periods between two expiries in which the timer came and no program ran, on a CPU that was idle
 * for a part of that time. Only those of a CPU's own event, which is never
 * stopped, are complete periods. */
FUSEE_FN __u64 hidden_while_idle(const struct at_hand *a, __s64 next)
{
	struct planned now = {.expires = next}, *before;
	__u64 *idles, hidden = 0;
	__u32 zero = 0;

	idles = fusee_bpf_map_lookup_elem(&ticks_idles, &zero);
	now.idles = idles ? *idles : 0;
	before = fusee_bpf_map_lookup_elem(&ticks_planned, &a->timer);
	if (before && a->expires > before->expires &&
	    (__u64)(a->expires - before->expires) % a->key.period == 0 &&
	    (before->idles != now.idles || !a->key.target))
		hidden = (__u64)(a->expires - before->expires) / a->key.period;
	bpf_map_update_elem(&ticks_planned, &a->timer, &now, 0);
	return hidden;
}

SEC("raw_tp/sched_switch")
int ticks_switch(__u64 *args)
{
	struct task_struct *next = (void *)args[2];
	__u64 *idles;
	__u32 zero = 0;
	int pid = 1;

	if (kernel_read(&pid, &next->pid) || pid)
		return 0;
	idles = fusee_bpf_map_lookup_elem(&ticks_idles, &zero);
	if (idles)
		++*idles;
	return 0;
}

SEC("raw_tp/hrtimer_expire_exit")
int ticks_exit(__u64 *args)
{
	struct hrtimer *timer = (void *)args[0];
	struct ticks_count none = {0}, *c;
	struct at_hand *a = at_hand();
	__s64 next, late;
	__u64 hidden;

	if (!a || a->timer != (__u64)timer)
		return 0;
	if (kernel_read(&next, &timer->node.expires) || !a->key.period)
		return 0;
	hidden = hidden_while_idle(a, next);
	a->timer = 0;
	c = fusee_bpf_map_lookup_elem(&ticks_counts, &a->key);
	if (!c) {
		bpf_map_update_elem(&ticks_counts, &a->key, &none, 0);
		c = fusee_bpf_map_lookup_elem(&ticks_counts, &a->key);
	}
	if (!c)
		return 0;
	if (!c->fired++)
		c->first_ns = a->expires;
	c->last_ns = a->expires;
	c->hidden_while_idle += hidden;
	late = next - a->expires - (__s64)a->key.period;
	if (late > 0) /* not where the event was stopped meanwhile */
		c->skipped += (__u64)late / a->key.period;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
