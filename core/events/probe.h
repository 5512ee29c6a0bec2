/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out by trying what this kernel lets this process sample; versions are not compared.
 * Everything that is opened is closed again. [any thread]
 */
#ifndef EVENTS_PROBE_H
#define EVENTS_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROBE_UNKNOWN INT_MIN

/* Each int but the last two is 0 when it works, else the -errno that the kernel returned. */
struct probe_perf {
	int own;       /* cpu-clock with user registers and stack, of this process */
	int ring;      /* mapping a ring buffer of 512 KiB for it */
	int arrives;   /* a sample came while this process used CPU; -ETIME: none came */
	int kernel;    /* the kernel's part of the stack */
	int others;    /* other users' processes (tried with process 1) */
	int all;       /* all processes of a CPU */
	int build_ids; /* mmap2 records that carry build ids */
	int cycles;    /* the hardware's cycle counter */
	int cgroup;    /* events of a control group */
	int paranoid;  /* kernel.perf_event_paranoid, PROBE_UNKNOWN: not readable */
	int mlock_kb;  /* kernel.perf_event_mlock_kb, PROBE_UNKNOWN likewise */
};

void probe_perf(struct probe_perf *ret);

int probe_kallsyms(void);  /* 0: addresses are shown; -EPERM: they are hidden; or -errno */
int probe_map_files(void); /* opening a file in /proc/self/map_files: 0 or -errno */
uint64_t probe_caps(void); /* effective capabilities, bit n is capability n */
bool probe_seccomp(void);  /* a seccomp filter is on this process */
/* "CAP_PERFMON"; NULL beyond the last known. */
const char *probe_cap_name(unsigned int cap);

/* What perf_event_open(2) failed for. */
struct probe_target {
	pid_t pid;         /* a running process; 0: none */
	bool all;          /* all processes */
	const char *again; /* the command line, to be pasted again: "fusee record -- ./prog" */
};

/*
 * Explains the error (errno or -errno) of a failed perf_event_open(2) to a user: the reason and
 * what helps, without a final newline; lines after the first are indented. The caller frees the
 * text; NULL: no memory.
 */
char *probe_explain(int error, const struct probe_target *);
#endif
