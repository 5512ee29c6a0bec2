/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the user registers of the threads of a process, which the kernel saved when they entered
 * it, and what uretprobes have replaced in the stack of one of them:
 * core/programs/task_registers.c. */
#include <fusee/unwinder.bpf.h>

#include "begin.h"
#include "kernel.h"
#include "records.h"
#include "returns.h"

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL_TYPE;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL_TYPE;

/* Members that only this program reads. */
struct task_struct___registers {
	int on_cpu;
	unsigned long nvcsw, nivcsw;
} KERNEL_TYPE;

static long (*bpf_seq_write)(struct seq_file *, const void *, __u32 len) = (void *)127;

/* The process. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} task_registers_of SEC(".maps");

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct task_record);
} task_registers_record SEC(".maps");

/* 0 or -1. */
FUSEE_FN int saved_registers(struct task_struct *task, struct user_regs *to)
{
	char *stack;

	if (kernel_has(task_pt_regs)) {
		void *regs = bpf_task_pt_regs(task);

		return regs && !bpf_probe_read_kernel(to, sizeof(*to), regs) ? 0 : -1;
	}
	/* THREAD_SIZE of x86-64 without KASAN */
	if (kernel_read(&stack, &task->stack) || !stack ||
	    bpf_probe_read_kernel(to, sizeof(*to), stack + 16384 - sizeof(*to)))
		return -1;
	return 0;
}

/* Reads what is written of the thread. The switches come first: if they are equal later, and the
 * thread does not run then, it did not run while the rest was read. 0 or -1. */
FUSEE_FN int describe(struct task_struct *task, struct task_record *r)
{
	struct task_struct___registers *more = (void *)task;
	struct user_regs regs;
	int tid, on_cpu;

	if (kernel_read(&r->nvcsw, &more->nvcsw) || kernel_read(&r->nivcsw, &more->nivcsw) ||
	    kernel_read(&on_cpu, &more->on_cpu) || on_cpu || kernel_read(&tid, &task->pid) ||
	    kernel_read(&r->tls, &task->thread.fsbase) || saved_registers(task, &regs))
		return -1;
	r->tid = tid;
	r->is_32_bit = (__u16)regs.cs != USER_CS;
	r->syscall = regs.orig_rax;
	regs_by_number(r->regs, &regs);
	r->regs[FUSEE_X86_RBP] = regs.rbp;
	r->regs[FUSEE_X86_RSP] = regs.rsp;
	r->regs[FUSEE_X86_RIP] = regs.rip;
	return 0;
}

SEC("iter/task")
int task_registers_write(struct bpf_iter__task *c)
{
	struct seq_file *seq = c->meta->seq;
	struct task_struct *task = c->task;
	__u32 zero = 0, *pid = fusee_bpf_map_lookup_elem(&task_registers_of, &zero);
	struct task_record *r = fusee_bpf_map_lookup_elem(&task_registers_record, &zero);
	int tgid;

	if (!task || !pid || !r || kernel_read(&tgid, &task->tgid) || (__u32)tgid != *pid)
		return 0;
	if (!describe(task, r))
		bpf_seq_write(seq, r, sizeof(*r));
	return 0;
}

/* The thread. */
struct {
	__uint(type, 2 /* ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} task_returns_of SEC(".maps");

struct {
	__uint(type, 6 /* PERCPU_ARRAY */);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct task_returns);
} task_returns_record SEC(".maps");

SEC("iter/task")
int task_returns_write(struct bpf_iter__task *c)
{
	struct seq_file *seq = c->meta->seq;
	struct task_struct *task = c->task;
	__u32 zero = 0, *of = fusee_bpf_map_lookup_elem(&task_returns_of, &zero), n;
	struct task_returns *r = fusee_bpf_map_lookup_elem(&task_returns_record, &zero);
	struct uprobe_task *uprobes;
	int tid;

	if (!task || !of || !r || kernel_read(&tid, &task->pid) || (__u32)tid != *of)
		return 0;
	uprobes = uprobes_of(task);
	if (!uprobes)
		return 0;
	r->page = uprobe_page(task);
	n = copy_returns(uprobes, r->at);
	r->n = n;
	r->pad = 0;
	if (!n)
		return 0;
	n = TASK_RETURNS_HEAD + n * sizeof(struct walk_return);
	__asm__ volatile("" : "+r"(n)); /* as in send_returns() */
	if (n <= sizeof(*r))
		bpf_seq_write(seq, r, n);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
