/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a script's policy what is to be done with a target. On the control thread, never per sample.
 */
#ifndef CONFIG_POLICY_H
#define CONFIG_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

struct plan;

#define POLICY_MAX_LABELS 16

/* Texts live as long as the plan. */
struct policy_answer {
	bool profile;
	double hz;
	uint64_t sinks;                               /* bit i: plan->sinks[i] */
	struct fusee_label labels[POLICY_MAX_LABELS]; /* text ones, to be added */
	uint32_t nlabels;
};

/*
 * The plan's answer about a target of these labels (texts, `pid` left out): the policy's answer,
 * or the defaults where there is none or it answers nil. An answer that is wrong, or takes longer
 * than its deadline of 20 ms: the defaults, and -EINVAL with one sentence in *text, file and line
 * in front ("fusee.lua:9: policy: 'hz' must be a number from 0.1 to 20000, got 'fast'").
 */
int plan_decide(const struct plan *, const struct fusee_label *labels, uint32_t n,
		struct policy_answer *ret, char **text);
/* Lua's memory, bytes. */
uint64_t plan_memory(const struct plan *);
#endif
