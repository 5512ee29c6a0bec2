/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Waits for locks. When a thread leaves its CPU in a futex call that waits for a lock, the program
 * keeps the time and the lock's address. When a futex call of another thread wakes it at that
 * address, that thread has released the lock: its stack is the sample, and the length of the wait
 * its value.
 */
#include <fusee/sampler.bpf.h>

#include "futex.h"

#define TASK_INTERRUPTIBLE 1u /* linux/sched.h */
#define TASK_DEAD 0x80u
#define PF_KTHREAD 0x200000u

#ifdef __bpf__
static void *(*bpf_get_current_task_btf)(void) = (void *)158;
static void *(*bpf_task_pt_regs)(void *task) = (void *)175;
#else
void *bpf_get_current_task_btf(void);
void *bpf_task_pt_regs(void *task);
#endif

/* ---- the kernel's structs ---- */

struct task_struct {
	int pid;
	unsigned int __state; /* 5.14; bpf_task_pt_regs() came with 5.15 */
	unsigned int flags;
} FUSEE_KERNEL_TYPE;

/* What a thread has called the kernel with. */
#ifdef __TARGET_ARCH_arm64
struct pt_regs {
	__u64 regs[31];
	int syscallno;
} FUSEE_KERNEL_TYPE;
#define CALL(r) ((__u32)(r)->syscallno)
#define ARG0(r) (r)->regs[0]
#define ARG1(r) (r)->regs[1]
#define ARG2(r) (r)->regs[2]
#define ARG4(r) (r)->regs[4]
#define CALL_FUTEX 98
#else
struct pt_regs {
	unsigned long r8, dx, si, di, orig_ax;
} FUSEE_KERNEL_TYPE;
#define CALL(r) ((__u32)(r)->orig_ax)
#define ARG0(r) (r)->di
#define ARG1(r) (r)->si
#define ARG2(r) (r)->dx
#define ARG4(r) (r)->r8
#define CALL_FUTEX 202
#endif

/* ---- what is kept of a thread that waits ---- */

#define SINCE 0 /* ns; 0: it does not wait for a lock */
#define LOCK 1  /* address */

/* The address of the lock for which the thread waits; 0: for none. A thread that is not in a call
 * has no number of one, or a negative number. */
FUSEE_FN __u64 awaited(struct task_struct *task)
{
	const struct pt_regs *r;

	if (!(task->__state & TASK_INTERRUPTIBLE) || task->flags & PF_KTHREAD)
		return 0;
	r = bpf_task_pt_regs(task);
	if (CALL(r) != CALL_FUTEX || !futex_is_lock(ARG1(r), ARG2(r)))
		return 0;
	return ARG0(r);
}

FUSEE_FN void at_switch(__u64 *args)
{
	const struct fusee_scope *scope = fusee_sampler_scope();
	struct task_struct *leaving = (void *)args[1];
	struct fusee_thread_memory first = {0}, *m;
	__u64 lock;

	if (!scope || !scope->period || !leaving->pid || !fusee_sampler_selected(scope, leaving))
		return;
	if (leaving->__state & TASK_DEAD) {
		fusee_sampler_forget(leaving);
		return;
	}
	lock = awaited(leaving);
	if (!lock)
		return;
	m = fusee_sampler_memory(leaving);
	if (m) {
		m->word[SINCE] = fusee_sampler_time();
		m->word[LOCK] = lock;
	} else {
		first.word[SINCE] = fusee_sampler_time();
		first.word[LOCK] = lock;
		fusee_sampler_remember(leaving, &first);
	}
}

/* ---- the thread that releases the lock ---- */

/* Is the running thread in a futex call that wakes who waits at this address? Not so where a wait
 * ends by its timeout or a signal: the interrupted thread, or what sends the signal, does
 * something else. */
FUSEE_FN int releases(struct task_struct *running, __u64 lock)
{
	const struct pt_regs *r;

	if (running->flags & PF_KTHREAD)
		return 0;
	r = bpf_task_pt_regs(running);
	return CALL(r) == CALL_FUTEX && futex_wakes(ARG1(r)) &&
	       (ARG0(r) == lock || (futex_wakes_second(ARG1(r)) && ARG4(r) == lock));
}

FUSEE_FN void at_waking(__u64 *args)
{
	const struct fusee_scope *scope = fusee_sampler_scope();
	struct task_struct *waits = (void *)args[0], *running;
	struct fusee_thread_memory *m;
	__u64 since, lock, now, weight;

	if (!scope || !scope->period || !fusee_sampler_selected(scope, waits))
		return;
	m = fusee_sampler_memory(waits);
	since = m ? m->word[SINCE] : 0;
	if (!since)
		return;
	lock = m->word[LOCK];
	m->word[SINCE] = 0;
	running = bpf_get_current_task_btf();
	now = fusee_sampler_time();
	if (now <= since || since < fusee_sampler_began() || !releases(running, lock))
		return;
	weight = fusee_sampler_chance(now - since);
	if (weight)
		fusee_sampler_take(running, weight, (__u32)lock, (__u32)(lock >> 32));
}

FUSEE_SAMPLER_PROGRAM(lock_waits, "tp_btf/sched_switch", at_switch);
FUSEE_SAMPLER_PROGRAM(lock_release, "tp_btf/sched_waking", at_waking);
