/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of a plan for the processes that run now: its discoveries run until each has
 * committed once, and its policy is called for each label set. Samples nothing and creates no sink.
 * One thread.
 */
#ifndef AGENT_PREVIEW_H
#define AGENT_PREVIEW_H

#include <stdint.h>

#include "config/plan.h"
#include "policy/decisions.h"

struct preview;

/* The plan is borrowed until preview_free(). Waits at most wait_ns for the discoveries; failures
 * are logged. 0 or -errno. */
int preview_new(struct preview **ret, const struct plan *, uint64_t wait_ns);
void preview_free(struct preview *); /* NULL is fine */
/* Running processes without kernel threads; *profiled: how many would be profiled. */
uint32_t preview_processes(const struct preview *, uint32_t *profiled);
/* Discoveries that could not be started, or had not committed in time. */
uint32_t preview_failed(const struct preview *);
/* Wrong answers of the policy; each was logged. */
uint32_t preview_wrong(const struct preview *);
/* Appends the decisions as an array, as the control socket's `targets`. */
void preview_targets(const struct preview *, const char *name, struct json *);

/* A decision as an object of that array. */
void decision_json(const struct plan *, const struct decision *, struct json *);
/* The names of its sinks, as the member `sinks`. */
void decision_sinks_json(const struct plan *, const struct decision *, struct json *);
#endif
