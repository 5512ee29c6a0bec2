/* SPDX-License-Identifier: Apache-2.0 */
/* The events that can be sampled besides CPU time, by name: of the hardware or of the kernel. */
#ifndef EVENTS_KIND_H
#define EVENTS_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

#define EVENT_NAME_MAX 128u

struct probe_points; /* symbols/probe_points.h */

struct event_kind {
	char name[EVENT_NAME_MAX]; /* "cycles", "sched:sched_switch" */
	uint32_t type;             /* of struct perf_event_attr, as config */
	uint64_t config;
	uint64_t period; /* default number of events between two samples */
	bool in_kernel;  /* it only happens in the kernel */
	bool hardware;   /* a counter that a machine may lack */
	/* A sampler plugin's, which only the BPF sampler samples; NULL: an event of perf. */
	const struct fusee_sampler_ops *chosen;
	/* Not NULL: it is hits of these probes, which only the BPF sampler samples, too; borrowed.
	 */
	const struct probe_points *probes;
	bool in_use; /* .. and what they have allocated is followed until it is freed */
};

/* The names that are not tracepoints, separated by blanks. */
extern const char event_kind_names[];

/* Finds an event by name: one of event_kind_names, or SYSTEM:TRACEPOINT. more: other names for the
 * sentence, each with a blank. 0; -EINVAL: there is no such event; -ENODEV: no tracefs is mounted;
 * or -errno of reading it. *error is one sentence that the caller frees (NULL: no memory). */
int event_kind_find(const char *name, const char *more, struct event_kind *, char **error);
#endif
