/* SPDX-License-Identifier: Apache-2.0 */
/* Time off the CPU: offcpu.bpf.c measures it, here is what it means. */
#include <errno.h>
#include <unistd.h>

#include <fusee/helpers.h>

#include "state.h"

FUSEE_EMBED(offcpu_bpf, "offcpu.bpf.o");

static const char *const states[OFFCPU_STATES] = {
	[OFFCPU_UNKNOWN] = "unknown",
	[OFFCPU_SLEEPING] = "sleeping",
	[OFFCPU_UNINTERRUPTIBLE] = "uninterruptible",
	[OFFCPU_RUNNABLE] = "runnable",
	[OFFCPU_STOPPED] = "stopped",
};

/* What waits is the caller of the functions that switch threads. */
static const char *const omit[] = {"__schedule", "schedule", NULL};

/* words[1]: for which part of the wait, of 2^32, the thread was runnable at its end. */
static uint32_t parts(void *ctx, const struct fusee_sampler_sample *s,
		      struct fusee_sampler_part *part)
{
	uint64_t queued = (uint64_t)((double)s->weight * s->words[1] / 0x1p32);

	(void)ctx;
	queued = queued < s->weight ? queued : s->weight;
	part[0] = (struct fusee_sampler_part){s->weight - queued, s->words[0], 1};
	part[1] = (struct fusee_sampler_part){queued, OFFCPU_RUNNABLE, 0};
	return queued ? 2 : 1;
}

static int label(void *ctx, uint32_t number, struct fusee_label *ret)
{
	(void)ctx;
	if (number >= OFFCPU_STATES)
		return -ENOENT;
	*ret = (struct fusee_label){.key = FUSEE_TEXT("state"), .str = fusee_text(states[number])};
	return 0;
}

static int check(void *ctx, char *text, uint32_t cap)
{
	(void)ctx;
	if (!access("/proc/self/schedstat", R_OK))
		return 0;
	snprintf(text, cap,
		 "how long a thread was ready before it ran: a kernel with CONFIG_SCHED_INFO");
	return -ENOTSUP;
}

static const struct fusee_sampler_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_SAMPLER_TIME,
	.type = "off_cpu",
	.unit = "nanoseconds",
	.amount = "off the CPU",
	.bpf = offcpu_bpf,
	.bpf_end = offcpu_bpf_end,
	.omit = omit,
	.parts = parts,
	.label = label,
	.check = check,
};

FUSEE_PLUGIN(offcpu, FUSEE_SAMPLER, .version = "1.0",
	     .doc = "Time in which threads are off their CPU: where they wait, and for how long.",
	     .ops = &ops);
