/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/sampler_kernel.h - the functions of <fusee/sampler.bpf.h> in a sampler's own object, where
 * they do nothing: the core's replace them when the objects are linked. The empty assembly keeps
 * arguments that nothing reads.
 */
#ifndef FUSEE_SAMPLER_KERNEL_H
#define FUSEE_SAMPLER_KERNEL_H

__attribute__((weak)) const struct fusee_sampler_scope *fusee_sampler_scope(void)
{
	return 0;
}

__attribute__((weak)) struct fusee_thread_memory *fusee_sampler_memory(void *task)
{
	__asm__ volatile("" : "+r"(task));
	return 0;
}

__attribute__((weak)) int fusee_sampler_remember(void *task,
						 const struct fusee_thread_memory *first)
{
	__asm__ volatile("" : "+r"(task), "+r"(first));
	return -1;
}

__attribute__((weak)) int fusee_sampler_forget(void *task)
{
	__asm__ volatile("" : "+r"(task));
	return 0;
}

__attribute__((weak)) __u64 fusee_sampler_began(void)
{
	return 0;
}

__attribute__((weak)) __u64 fusee_sampler_complete_since(void *task)
{
	__asm__ volatile("" : "+r"(task));
	return 0;
}

__attribute__((weak)) __u64 fusee_sampler_time(void)
{
	return 0;
}

__attribute__((weak)) __u64 fusee_sampler_chance(__u64 value)
{
	__asm__ volatile("" : "+r"(value));
	return 0;
}

__attribute__((weak)) int fusee_sampler_take(void *task, __u64 weight, __u32 word0, __u32 word1)
{
	__asm__ volatile("" : "+r"(task), "+r"(weight), "+r"(word0), "+r"(word1));
	return -1;
}

static char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
