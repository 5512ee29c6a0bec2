/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that were offline and are back between two looks at the kernel's list: as all are behind a
 * suspended machine. Events of a CPU have ended then, and nothing else tells. */
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

/* Takes the CPUs whose events have ended out of those that are online: offline once more, for
 * this look. Reading interrupts each CPU, so it happens every 5 s; without the right to it, or
 * without memory, never. */
void cpu_watch_look(struct cpu_watch *, struct cpus *online);
void cpu_watch_close(struct cpu_watch *);
#endif
