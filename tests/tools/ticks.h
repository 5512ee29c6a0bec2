/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What ticks.bpf.c counts for tool_ticks. */
#ifndef TOOLS_TICKS_H
#define TOOLS_TICKS_H

/* Of one event period: whose event it is, who was interrupted (0: nobody, the CPU was idle), where.
 */
struct ticks_key {
	__u64 period; /* ns */
	__u32 owner, target, cpu, pad;
};

struct ticks_count {
	__u64 fired;   /* times that the timer came */
	__u64 skipped; /* periods that it was late by, each time: ticks that never came */
	/* ticks before those that fired, that no program saw and the CPU was idle between */
	__u64 hidden_while_idle;
	__s64 first_ns, last_ns; /* when it was to come, CLOCK_MONOTONIC */
};
#endif
