/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The fields of kernel structs that the BPF programs read, by name, and the helpers that they call.
 * libbpf finds the fields' offsets in the running kernel's BTF when it loads a program, so this
 * replaces vmlinux.h.
 */
#ifndef BPF_KERNEL_H
#define BPF_KERNEL_H

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct cfs_rq;
struct css_set;

struct sched_entity {
	__u64 exec_start; /* of the idle task: when it was put on its CPU (6.8) */
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime; /* when the thread was put on its CPU */
	struct cfs_rq *cfs_rq;       /* with CONFIG_FAIR_GROUP_SCHED */
} KERNEL_TYPE;

/* A CPU's queue of threads. */
struct rq {
	struct task_struct *idle;
	__u64 clock;
	__u64 clock_idle; /* when the CPU last became idle (6.0) */
} KERNEL_TYPE;

struct cfs_rq {
	struct rq *rq; /* with CONFIG_FAIR_GROUP_SCHED */
} KERNEL_TYPE;

struct thread_struct {
	unsigned long fsbase; /* x86-64: the thread pointer, as of the last switch */
} KERNEL_TYPE;

/* What a uretprobe has replaced: the address of the return address, and what that was. */
struct return_instance {
	unsigned long stack, orig_ret_vaddr;
	struct return_instance *next; /* of the call before */
} KERNEL_TYPE;

/* A thread that has met a uprobe. */
struct uprobe_task {
	struct return_instance *return_instances; /* the newest first */
	unsigned long vaddr, xol_vaddr; /* of a probed instruction, and of the copy that is run */
	unsigned int depth;             /* of return_instances */
} KERNEL_TYPE;

struct xol_area {
	unsigned long vaddr; /* of the page in the process */
} KERNEL_TYPE;

struct uprobes_state {
	struct xol_area *xol_area;
} KERNEL_TYPE;

struct mm_struct {
	struct uprobes_state uprobes_state; /* with CONFIG_UPROBES */
} KERNEL_TYPE;

/* What the threads of a process share. */
struct signal_struct {
	struct {
		int counter;
	} live; /* threads whose exit has not begun */
} KERNEL_TYPE;

struct task_struct {
	int pid, tgid; /* ids of the thread and of its process */
	struct mm_struct *mm;
	struct uprobe_task *utask; /* with CONFIG_UPROBES */
	struct task_struct *real_parent;
	struct signal_struct *signal;
	void *stack;
	struct sched_entity se;
	struct thread_struct thread;
	struct css_set *cgroups; /* with CONFIG_CGROUPS */
} KERNEL_TYPE;

struct vm_unmapped_area_info {
	unsigned long length;
} KERNEL_TYPE;

/* struct pt_regs of x86-64 (asm/ptrace.h), the same on all kernels; from 6.9 on, cs and ss share
 * their words with other values. */
struct user_regs {
	__u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax;
	__u64 rip, cs, eflags, rsp, ss;
};

#define USER_CS 0x33 /* __USER_CS: 64-bit code */

/* struct bpf_perf_event_data of x86-64 */
struct sampler_context {
	struct user_regs regs;
	__u64 sample_period, addr;
};

/* Numbers of helpers in enum bpf_func_id (uapi/linux/bpf.h), for kernel_has(); since which kernel.
 */
enum bpf_func_id___has {
	BPF_FUNC_get_current_task_btf___has = 158, /* 5.11 */
	BPF_FUNC_get_attach_cookie___has = 174,    /* 5.15 */
	BPF_FUNC_task_pt_regs___has = 175,         /* 5.15 */
};

#define kernel_has(helper)                                                    \
	__builtin_preserve_enum_value(                                        \
		*(typeof(enum bpf_func_id___has) *)BPF_FUNC_##helper##___has, \
		0 /* does it exist? */)

/* Helper numbers: as above. */
static __u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static __u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static __u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static __u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_get_current_comm)(void *buf, __u32 size) = (void *)16;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   __u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*bpf_perf_event_output)(void *ctx, void *map, __u64 flags, void *data,
				     __u64 size) = (void *)25;
static long (*bpf_ringbuf_output)(void *map, void *data, __u64 size, __u64 flags) = (void *)130;
static struct task_struct *(*bpf_get_current_task)(void) = (void *)35;
static long (*bpf_tail_call)(void *ctx, void *programs, __u32 index) = (void *)12;
static long (*bpf_get_stack)(void *ctx, void *buf, __u32 size, __u64 flags) = (void *)67;
static long (*bpf_probe_read_kernel)(void *dst, __u32 size, const void *from) = (void *)113;
static __u64 (*bpf_get_current_ancestor_cgroup_id)(int level) = (void *)123;
static void *(*bpf_get_current_task_btf)(void) = (void *)158;
static void *(*bpf_task_storage_get)(void *map, void *task, void *value, __u64 flags) = (void *)156;
static __u64 (*bpf_get_attach_cookie)(void *ctx) = (void *)174;
static __u64 (*bpf_get_func_ip)(void *ctx) = (void *)173;
static void *(*bpf_task_pt_regs)(void *task) = (void *)175;

#define BPF_F_CURRENT_CPU 0xffffffffull

#define kernel_has_field(field) __builtin_preserve_field_info(field, 2 /* does it exist? */)

/* Reads a field of a kernel struct, which may fault. 0 or -1. */
#define kernel_read(to, from) \
	(bpf_probe_read_kernel(to, sizeof(*(to)), __builtin_preserve_access_index(from)) ? -1 : 0)

/* A field that user space or another CPU may write at any time. */
#define READ_ONCE(field) (*(volatile typeof(field) *)&(field))
#endif
