/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: probes that a script declares, beside CPU time. A hook in a file is put into each sampled
 * process that maps a file by the hook's path, of that process alone, whenever that is known; so a
 * file may come, go or be replaced. One at a tracepoint is put once. For the thread of the
 * profiler.
 */
#ifndef HOOKS_HOOKS_H
#define HOOKS_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "config/plan.h"
#include "probes/parse.h"
#include "profiler/profiler.h"

struct hook {
	uint8_t number; /* of its samples: sample_hit.hook */
	char *text, *name, *where;
	char *resolved; /* the path behind links of this root; NULL: none, or the same */
	uint64_t period;
	struct probe_text parsed;
	uint64_t retired_ns; /* CLOCK_MONOTONIC, when the plan lost it; 0: it has it */
	uint64_t before[PROBE_RESULT_COUNT]; /* what earlier hooks of this number had counted */
	struct {
		uint32_t files;    /* with such a place, so far */
		uint32_t without;  /* by its path, that have none, or could not be read */
		uint32_t now;      /* processes with probes, once for each file */
		uint32_t unprobed; /* likewise without, at first or to their end */
		char *error;       /* why, the last; NULL: nothing failed */
	} state;
};

/* Looks for the places of a plan's probes, as far as files are there and in the kernel. 0; -EINVAL
 * with sentences, or -ENOMEM, and the plan is freed. */
int hooks_check(struct plan **, struct plan_errors *);

struct hooks;

/* The profiler's BPF sampler was opened for hooks; it is borrowed. 0 or -ENOMEM. */
int hooks_new(struct hooks **ret, struct profiler *);
void hooks_free(struct hooks *); /* before the profiler is closed; NULL is fine */
/* From now on there are the probes of this plan: those that were there stay. h: NULL is fine. */
void hooks_set(struct hooks *h, const struct plan *);
/* Probes what is known now and was not at the last call, and removes probes of what has ended: to
 * be called now and then. Does not wait. NULL is fine. */
void hooks_update(struct hooks *);
/* Removes all probes, in the background; NULL is fine. */
void hooks_stop(struct hooks *);
/* The hook of this number, which the plan may have lost; NULL: there is none. */
const struct hook *hooks_of(const struct hooks *, uint8_t number);
/* Adds the list `probes`; nothing where h is NULL. */
void hooks_json(const struct hooks *, struct json *);
/* Sets the metrics; NULL is fine. */
void hooks_metrics(const struct hooks *);
#endif
