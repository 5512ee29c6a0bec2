/* SPDX-License-Identifier: Apache-2.0 */
/* Finds CPUs that went offline and came back between two reads of the kernel's list, as all do when
 * a machine is suspended. Their events have ended, which the list does not show. */
#ifndef EVENTS_CPU_WATCH_H
#define EVENTS_CPU_WATCH_H

#include <stdint.h>

#include "events/internal/cpus.h"

struct cpu_clock {
	int fd;              /* an event that samples nothing; -1: none */
	uint64_t enabled_ns; /* its time when it was read last */
};

struct cpu_watch {
	struct cpu_clock *cpus;
	int n;
	uint64_t looked_ns; /* CLOCK_MONOTONIC */
};

/* Removes the CPUs whose events have ended from `online`: to this caller they are offline once
 * more. Reading the events interrupts each CPU, so it happens every 5 s; never without the right to
 * open them, or without memory. */
void cpu_watch_look(struct cpu_watch *, struct cpus *online);
void cpu_watch_close(struct cpu_watch *);
#endif
