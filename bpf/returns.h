/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Return addresses that uretprobes have replaced. At the entry of a probed function the kernel
 * writes the address of its uprobe page over the return address, and keeps what that was for the
 * thread (kernel/events/uprobes.c). Calls that a longjmp has ended stay in that list until the next
 * probed call or return.
 */
#ifndef BPF_RETURNS_H
#define BPF_RETURNS_H

#include "frame.h"
#include "kernel.h"

/* The page [uprobes] of a process: in its first slot is what probed functions return to, in the
 * others are copies of probed instructions, each for a thread. */
#define UPROBE_PAGE 4096u
#define UPROBE_SLOT 128u /* UPROBE_XOL_SLOT_BYTES */

/* NULL: the thread has not met a uprobe, or the kernel has none. */
FUSEE_FN struct uprobe_task *uprobes_of(struct task_struct *task)
{
	struct uprobe_task *u;

	if (!kernel_has_field(task->utask) || kernel_read(&u, &task->utask))
		return 0;
	return u;
}

/* The address of the thread's uprobe page; 0: there is none. For a thread with uprobes_of(). */
FUSEE_FN __u64 uprobe_page(struct task_struct *task)
{
	struct mm_struct *mm;
	struct xol_area *area;
	unsigned long at;

	if (!kernel_has_field(task->utask) || kernel_read(&mm, &task->mm) ||
	    kernel_read(&area, &mm->uprobes_state.xol_area) || !area ||
	    kernel_read(&at, &area->vaddr))
		return 0;
	return at;
}

/* Copies what the thread's return addresses were, the newest first. Returns how many. */
FUSEE_FN __u32 copy_returns(struct uprobe_task *of, struct walk_return to[WALK_RETURNS])
{
	struct return_instance *r;
	__u32 n = 0;

	if (kernel_read(&r, &of->return_instances))
		return 0;
	for (__u32 i = 0; i < WALK_RETURNS && r; i++) {
		if (kernel_read(&to[i].at, &r->stack) ||
		    kernel_read(&to[i].pc, &r->orig_ret_vaddr) || kernel_read(&r, &r->next))
			break;
		n++;
	}
	return n;
}
#endif
