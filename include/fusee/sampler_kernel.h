/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fusee/sampler_kernel.h - the functions of <fusee/sampler.bpf.h> in a sampler's own object. Those
 * of the core do nothing there: the core's replace them when the objects are linked. The empty
 * assembly keeps arguments that nothing reads.
 */
#ifndef FUSEE_SAMPLER_KERNEL_H
#define FUSEE_SAMPLER_KERNEL_H

/* Which of the samplers that are used at once this is. The core writes it into the object before
 * that is loaded, so the verifier knows it as a constant. */
static const volatile __u32 fusee_sampler_number __attribute__((used)) = 0;

__attribute__((weak)) const struct fusee_scope *fusee_sampler_scope_of(__u32 sampler)
{
	__asm__ volatile("" : "+r"(sampler));
	return 0;
}

__attribute__((weak)) struct fusee_thread_memory *fusee_sampler_memory_of(__u32 sampler, void *task)
{
	__asm__ volatile("" : "+r"(sampler), "+r"(task));
	return 0;
}

__attribute__((weak)) int fusee_sampler_remember_of(__u32 sampler, void *task,
						    const struct fusee_thread_memory *first)
{
	__asm__ volatile("" : "+r"(sampler), "+r"(task), "+r"(first));
	return -1;
}

__attribute__((weak)) int fusee_sampler_forget_of(__u32 sampler, void *task)
{
	__asm__ volatile("" : "+r"(sampler), "+r"(task));
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

__attribute__((weak)) __u64 fusee_sampler_chance_of(__u32 sampler, __u64 value)
{
	__asm__ volatile("" : "+r"(sampler), "+r"(value));
	return 0;
}

__attribute__((weak)) int fusee_sampler_take_of(__u32 sampler, void *task, __u64 weight,
						__u32 word0, __u32 word1)
{
	__asm__ volatile("" : "+r"(sampler), "+r"(task), "+r"(weight), "+r"(word0), "+r"(word1));
	return -1;
}

/* ---- the same, of this sampler ---- */

FUSEE_FN const struct fusee_scope *fusee_sampler_scope(void)
{
	return fusee_sampler_scope_of(fusee_sampler_number);
}

FUSEE_FN struct fusee_thread_memory *fusee_sampler_memory(void *task)
{
	return fusee_sampler_memory_of(fusee_sampler_number, task);
}

FUSEE_FN int fusee_sampler_remember(void *task, const struct fusee_thread_memory *first)
{
	return fusee_sampler_remember_of(fusee_sampler_number, task, first);
}

FUSEE_FN int fusee_sampler_forget(void *task)
{
	return fusee_sampler_forget_of(fusee_sampler_number, task);
}

FUSEE_FN __u64 fusee_sampler_chance(__u64 value)
{
	return fusee_sampler_chance_of(fusee_sampler_number, value);
}

FUSEE_FN int fusee_sampler_take(void *task, __u64 weight, __u32 word0, __u32 word1)
{
	return fusee_sampler_take_of(fusee_sampler_number, task, weight, word0, word1);
}

static char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
