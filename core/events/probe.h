/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this kernel lets this process sample, found out by trying: no version numbers, no
 * assumptions. Everything is opened, looked at and closed again; nothing stays changed. [any
 * thread]
 */
#ifndef EVENTS_PROBE_H
#define EVENTS_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROBE_UNKNOWN INT_MIN

/* Each int is 0 when it works, else the -errno that the kernel answered. */
struct probe_perf {
	int own;       /* cpu-clock with user registers and stack, of a program of one's own */
	int ring;      /* mapping a ring buffer of 512 KiB for it */
	int arrives;   /* a sample came while this process burned CPU; -ETIME: none did */
	int kernel;    /* the kernel's part of the stack */
	int others;    /* other users' processes (tried with process 1) */
	int whole;     /* all processes of a CPU */
	int build_ids; /* mmap2 records that carry build ids */
	int cycles;    /* the hardware's cycle counter */
	int cgroup;    /* events of a control group */
	int paranoid;  /* kernel.perf_event_paranoid, PROBE_UNKNOWN: not readable */
	int mlock_kb;  /* kernel.perf_event_mlock_kb, PROBE_UNKNOWN likewise */
};

void probe_perf(struct probe_perf *ret);

int probe_kallsyms(void);  /* 0: addresses are shown; -EPERM: hidden; other -errno */
int probe_map_files(void); /* opening /proc/PID/map_files of a process of one's own */
uint64_t probe_caps(void); /* effective capabilities, bit n is capability n */
bool probe_seccomp(void);  /* a seccomp filter is on this process */
/* "CAP_PERFMON"; NULL beyond the last known. */
const char *probe_cap_name(unsigned int cap);

/* What was to be sampled when perf_event_open failed. */
struct probe_target {
	pid_t pid;         /* a running process; 0: none named */
	bool whole;        /* all processes */
	const char *again; /* the command line to paste again: "fusee record -- ./prog" */
};

/*
 * The sentence for the person in front of it, from the -errno (or errno) of a failed
 * perf_event_open: what stands in the way and what helps, without a final newline; lines after the
 * first are indented. The caller frees it; NULL: no memory.
 */
char *probe_explain(int error, const struct probe_target *);
#endif
