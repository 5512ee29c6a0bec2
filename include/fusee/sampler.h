/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/sampler.h - the part of a sampler that is not in the kernel: what its samples are called,
 * in which unit, and what they mean. <fusee/plugin.h> includes it; 0.7.
 *
 * A sampler's other part is a BPF object: <fusee/sampler.bpf.h>. The core links it with the walk of
 * stacks, and everything behind that is the same as for CPU time: `record -e NAME`, `top -e NAME`
 * and `sample.NAME {}` in a script. A value of a sampler is never added to that of another.
 */
#ifndef FUSEE_SAMPLER_H
#define FUSEE_SAMPLER_H

#include <stdint.h>

#include <fusee/profile.h>

enum fusee_sampler_flags {
	/* Its values are ns, and a period is 1 s / rate (-F, hz). Without it values are numbers of
	 * the unit, and a period is such a number (-c, period). */
	FUSEE_SAMPLER_TIME = 1,
};

#define FUSEE_SAMPLER_PARTS 4u

/* A part of a sample's weight: in the profile a sample of its own, with the same stack. FROZEN */
struct fusee_sampler_part {
	uint64_t weight; /* the sum of all parts is the sample's */
	uint32_t label;  /* number for ops->label(), below UINT32_MAX */
	uint32_t count;  /* what it adds to the number of samples: 1 of one part, 0 of all others */
};

/* A sample as the BPF half has taken it. */
struct fusee_sampler_sample {
	uint32_t size, pid, tid;
	uint32_t words[2]; /* of fusee_sampler_take() */
	uint32_t pad;
	uint64_t weight;
};

struct fusee_sampler_ops {
	uint32_t size, flags;    /* enum fusee_sampler_flags */
	const char *type, *unit; /* of the profile's values: "off_cpu", "nanoseconds" */
	/* Behind an amount, for people: "12.3 s off the CPU", "311 forks". */
	const char *amount;
	uint64_t period;           /* default, in the unit; 0 with FUSEE_SAMPLER_TIME */
	const void *bpf, *bpf_end; /* the half in the kernel, an ELF object: FUSEE_EMBED() */
	/* Stacks begin with frames of the kernel's interrupt, and of what called the program. The
	 * innermost are omitted up to the last of these functions in a row. Ends with NULL; NULL:
	 * all frames are shown. */
	const char *const *omit;
	/* [sampling thread] Splits a sample into parts. Returns how many, at most
	 * FUSEE_SAMPLER_PARTS. NULL: one part whose label is words[0]. */
	uint32_t (*parts)(void *ctx, const struct fusee_sampler_sample *,
			  struct fusee_sampler_part *parts);
	/* [sampling thread] The label of samples with this number, a text label whose bytes are
	 * valid until the next call. 0, or -ENOENT: such samples have none. NULL: no samples have
	 * one. */
	int (*label)(void *ctx, uint32_t number, struct fusee_label *ret);
	/* [control thread] For `fusee doctor`: what this machine lacks for exact values, a sentence
	 * of at most cap bytes, terminated. 0: nothing; -ENOTSUP with a sentence. May be NULL. */
	int (*check)(void *ctx, char *text, uint32_t cap);
};

#endif
