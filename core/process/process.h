/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes as the sampler sees them: one life of a pid each (exec begins a new one), with the
 * executable mappings that it had. Fed by perf sideband records in order of time, and by /proc for
 * what ran before. For one thread.
 */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct file; /* one file content: core/sampling/files.h */

struct process_mapping {
	uint64_t lo, hi;   /* [lo, hi) */
	uint64_t offset;   /* file offset of lo */
	uint64_t since;    /* perf time at which it came, 0: before us */
	struct file *file; /* borrowed; NULL: anonymous memory */
	uint64_t bias;     /* runtime address - ELF virtual address; valid if based */
	bool based;
	bool told;      /* the kernel's sampler knows it */
	bool plain;     /* without a file, and the unwinders were asked who steps its code */
	bool seen;      /* in the last look at /proc: process_drop_unseen() */
	uint64_t until; /* of one that was covered: when; else 0 */
};

#define PROCESS_PAST 64u

struct process {
	uint64_t id; /* never used again while we live */
	pid_t pid;
	char comm[16];
	char name[64];                    /* base name of its executable, "" not known yet */
	struct process_mapping *mappings; /* sorted, disjoint */
	uint32_t n, cap;
	struct process_mapping
		*past; /* covered by later ones: the newest PROCESS_PAST, as a ring */
	uint32_t npast;
	uint32_t last; /* index of the last hit */
	bool started;  /* has run user code: until then it is between exec and its first instruction
			*/
	uint64_t ended; /* perf time of its end, or of the exec that ended this life; 0: it lives */
	pid_t gone;     /* the thread of it that ended last: what comes of it later is its end */
	bool headless;  /* its main thread has ended, and others have not */
	bool replaced;  /* its pid is another life's now: by exec, or used again */
	uint32_t scanned; /* the pipeline's: when its mappings were last read from /proc; 0 never */
	uint64_t waiting; /* the pipeline's: bytes of stack copies that wait for its tables */
	uint64_t parents[2];      /* ids of the lives that it was forked from, and that one from */
	struct {                  /* what the kernel's sampler is told of it: core/bpf/sampler.h */
		uint32_t chunk;   /* 0: nothing */
		uint32_t version; /* of what it was told */
		bool stale;       /* something has changed since */
		bool waits;       /* it was told without a program that is not there yet */
		/* code was covered by other code at that time, when it had been told this version
		 */
		uint64_t covered;
		uint32_t covered_version;
		uint64_t since;   /* when it was told that: changes are noted from then on */
		uint64_t looked;  /* when /proc was last read for it */
		uint64_t no_room; /* when there was none for it; 0: there was */
	} sampler;
};

struct process_table;

int process_table_new(struct process_table **ret);
void process_table_free(struct process_table *);

/* The current life of pid, or NULL. */
struct process *process_find(struct process_table *, pid_t pid);
/* The current life, made if there is none. NULL: no memory. */
struct process *process_get(struct process_table *, pid_t pid);
/* exec: a new life without mappings. */
struct process *process_exec(struct process_table *, pid_t pid, uint64_t time, const char *comm);
/* fork of a process (not of a thread): the child has its parent's mappings and name. */
struct process *process_fork(struct process_table *, pid_t parent, pid_t child);

/* Covers what was there: what it overlaps is cut. 0 or -ENOMEM. */
int process_map(struct process *, const struct process_mapping *);
/* Drops the mappings that are not seen: they ended at that time or before. */
void process_drop_unseen(struct process *, uint64_t time);
/* The mapping that holds addr, or NULL. */
struct process_mapping *process_mapping(struct process *, uint64_t addr);
/* The mapping that held addr at that perf time, also one that was covered since; or NULL. */
struct process_mapping *process_mapping_at(struct process *, uint64_t addr, uint64_t time);
/* Frees the lives that ended before that time and that keep() does not want; ends those whose pid
 * is gone though no record said so. before 0: the latter alone. */
void process_sweep(struct process_table *, uint64_t before,
		   bool (*keep)(void *arg, struct process *), void *arg);
void process_each(struct process_table *, void (*each)(void *arg, struct process *), void *arg);
/* Thread names. "" unknown: the process's comm. */
int process_thread_comm(struct process_table *, pid_t tid, const char *comm);
const char *process_comm(struct process_table *, const struct process *, pid_t tid);
void process_thread_exit(struct process_table *, pid_t tid);
#endif
