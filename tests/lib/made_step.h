/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of a step over processes that are made up share: what the step remembers, and how
 * stacks with faults compare with the complete one. Include it once in a test program. */
#ifndef MADE_STEP_H
#define MADE_STEP_H

#include <fusee/unwinder.bpf.h>

#include "test.h"

#define MOST 16 /* frames of a stack */
#define LIES 7

/* The frames that a step has pushed, and how it ended. */
struct stack {
	uint64_t pushed[MOST][2];
	uint32_t n;
	int next;
	uint32_t error;
};

/* What the steps remember, and whether names are known. They outlive a process that is made up. */
static struct {
	uint64_t key, value;
} memory[64];
static uint32_t nmemory;
static int all_known;

static __u64 recall_made(struct fusee_native *n, __u64 key)
{
	for (uint32_t i = 0; i < nmemory; i++)
		if (memory[i].key == key)
			return memory[i].value;
	return 0;
}

static void remember_made(struct fusee_native *n, __u64 key, __u64 value)
{
	CHECK(nmemory < 64);
	memory[nmemory].key = key;
	memory[nmemory++].value = value;
}

static int is_known(struct fusee_native *n, __u32 kind, __u64 key)
{
	return all_known;
}

static int is_beginning(const struct stack *s, const struct stack *complete)
{
	return s->n <= complete->n &&
	       !memcmp(s->pushed, complete->pushed, s->n * sizeof(s->pushed[0]));
}

/* A word of the process was a lie. It may be believed: then at most one frame is shown that is not
 * the process's, and at most one more than there are; those that are shown are in their order. */
static int is_bearable(const struct stack *s, const struct stack *complete)
{
	uint32_t i = 0, same = 0;

	for (uint32_t k = 0; k < s->n; k++) {
		uint32_t found = i;

		while (found < complete->n &&
		       memcmp(s->pushed[k], complete->pushed[found], sizeof(s->pushed[k])))
			found++;
		same += found < complete->n;
		i = found < complete->n ? found + 1 : i;
	}
	return s->n <= complete->n + 1 && s->n - same <= 1;
}

/* What a word at this address, which was `old`, may be instead; object: an address of the process.
 */
static uint64_t lie_of(int number, uint64_t at, uint64_t old, uint64_t object)
{
	const uint64_t lies[LIES] = {0, ~0ull, at, 1ull << 47, object, old + 8, old ^ 1};

	return lies[number];
}
#endif
