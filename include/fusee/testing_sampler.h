/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/testing_sampler.h - the functions of <fusee/sampler.bpf.h> for the test of one sampler,
 * whose BPF half the test includes: it runs natively, over threads that the test makes up. A struct
 * task_struct has the fields that the sampler declares.
 *
 *	fusee_testing_sampler = (struct fusee_testing_sampler){.selected = 1, .period = 1};
 *	fusee_sampler_program_forks(args);
 *	assert(fusee_testing_sampler.ntaken == 1);
 *
 * For one thread. Include the header in one source file of the test.
 */
#ifndef FUSEE_TESTING_SAMPLER_H
#define FUSEE_TESTING_SAMPLER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <fusee/helpers.h>
#include <fusee/sampler.bpf.h>

#define FUSEE_TESTING_THREADS 16

struct fusee_testing_taken {
	void *task;
	uint64_t weight;
	uint32_t words[2];
};

static struct fusee_testing_sampler {
	/* Set by the test. */
	int selected;            /* all processes are; else none is */
	int full;                /* no thread has room for what is kept of it */
	uint64_t period;         /* 0: no samples are taken */
	uint64_t now, began;     /* fusee_sampler_time() and fusee_sampler_began() */
	uint64_t complete_since; /* fusee_sampler_complete_since() */
	int unlucky;             /* values below a period are no samples; else all are */

	/* Set by the sampler. */
	struct fusee_testing_taken taken; /* the last */
	uint32_t ntaken, seen;            /* samples; events */
	struct {
		void *task; /* NULL: free */
		struct fusee_thread_memory memory;
	} threads[FUSEE_TESTING_THREADS];
} fusee_testing_sampler;

const struct fusee_scope *fusee_sampler_scope(void)
{
	static struct fusee_scope scope;

	scope.period = fusee_testing_sampler.period;
	scope.all = fusee_testing_sampler.selected != 0;
	return &scope;
}

struct fusee_thread_memory *fusee_sampler_memory(void *task)
{
	for (int i = 0; i < FUSEE_TESTING_THREADS; i++)
		if (fusee_testing_sampler.threads[i].task == task)
			return &fusee_testing_sampler.threads[i].memory;
	return NULL;
}

int fusee_sampler_remember(void *task, const struct fusee_thread_memory *first)
{
	for (int i = 0; i < FUSEE_TESTING_THREADS; i++) {
		if (!fusee_testing_sampler.selected || fusee_testing_sampler.full ||
		    fusee_testing_sampler.threads[i].task)
			continue;
		fusee_testing_sampler.threads[i].task = task;
		fusee_testing_sampler.threads[i].memory = *first;
		return 0;
	}
	return -1;
}

int fusee_sampler_forget(void *task)
{
	for (int i = 0; i < FUSEE_TESTING_THREADS; i++)
		if (fusee_testing_sampler.threads[i].task == task)
			fusee_testing_sampler.threads[i].task = NULL;
	return 0;
}

__u64 fusee_sampler_began(void)
{
	return fusee_testing_sampler.began;
}

__u64 fusee_sampler_complete_since(void *task)
{
	(void)task;
	return fusee_testing_sampler.complete_since;
}

__u64 fusee_sampler_time(void)
{
	return fusee_testing_sampler.now;
}

__u64 fusee_sampler_chance(__u64 value)
{
	struct fusee_testing_sampler *t = &fusee_testing_sampler;

	t->seen++;
	return value >= t->period ? value : t->unlucky ? 0 : t->period;
}

int fusee_sampler_take(void *task, __u64 weight, __u32 word0, __u32 word1)
{
	struct fusee_testing_sampler *t = &fusee_testing_sampler;

	t->taken = (struct fusee_testing_taken){task, weight, {word0, word1}};
	t->ntaken++;
	return 0;
}

#endif
