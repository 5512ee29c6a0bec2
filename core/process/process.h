/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and the executable mappings that they have and had. A process is one program in one
 * pid: exec begins another process, and so does a pid that is used again. The table is fed from
 * perf's sideband records in order of time, and from /proc for what ran before. Times are perf
 * times: CLOCK_MONOTONIC nanoseconds. For one thread.
 */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file; /* one file content: files/files.h */

/* A file whose code may have been copied into the memory of a mapping: unwind/moved_text.h. The
 * file's `offset` is, or was, mapped at `lo`. */
struct process_text {
	struct file *file; /* borrowed; NULL: none */
	uint64_t lo, offset;
	uint64_t differed; /* when memory and file were last found to differ; 0: never */
	uint32_t tries;    /* how often they were, since the memory was mapped */
};

struct process_mapping {
	uint64_t lo, hi;          /* [lo, hi) */
	uint64_t offset;          /* file offset of lo */
	uint64_t since;           /* when it was mapped; 0: before the process was known */
	uint64_t until;           /* past mappings: when it was covered; else 0 */
	struct file *file;        /* borrowed; NULL: anonymous memory */
	struct process_text text; /* of anonymous memory, also if `moved` */
	uint64_t bias;            /* runtime address - ELF virtual address; valid if based */
	bool based;
	bool moved;   /* anonymous memory with a copy of the bytes of `file` */
	bool uprobes; /* the kernel's page [uprobes], where uretprobes have functions return to */
	bool seen;    /* found in the current reading of /proc: process_drop_unseen() */
};

#define PROCESS_PAST 64u
#define PROCESS_MAX_MAPPINGS 16384u /* of a process; the kernel allows it 65,530 */

struct process {
	struct process_table *table;
	uint64_t id; /* never used for another process of the table */
	pid_t pid;
	char comm[16];
	char name[64];    /* base name of its executable; "": not known yet */
	uint32_t program; /* id of its executable's file; 0: not known yet */

	struct process_mapping *mappings; /* sorted by address, disjoint */
	uint32_t n, cap;
	uint32_t last;                /* index of the mapping that was found last */
	struct process_mapping *past; /* ring of the PROCESS_PAST mappings that were covered last */
	uint32_t npast;               /* mappings that were ever covered */

	/* User code has run. Before that the process is between exec and its first instruction. */
	bool started;
	uint64_t ended;        /* when it exited, or another program was exec'ed; 0: it runs */
	bool replaced;         /* the pid is another process's now */
	bool leaderless;       /* the main thread has exited and others run on */
	pid_t last_exited;     /* thread that exited last */
	uint64_t ancestors[2]; /* ids of its parent and grandparent; 0: not seen to fork */

	max_align_t owner[]; /* process_owner() */
};

struct process_table;

/* What the owner of a table keeps for each process. */
struct process_owner {
	size_t bytes; /* of process_owner(), zero at first, freed with the process */
	void (*forked)(void *arg, const struct process *parent,
		       struct process *child);      /* or NULL */
	void (*freed)(void *arg, struct process *); /* about to be freed; or NULL */
	void *arg;
};

/* owner: copied; NULL: none. 0 or -ENOMEM. */
int process_table_new(struct process_table **ret, const struct process_owner *owner);
void process_table_free(struct process_table *); /* NULL is fine */

static inline void *process_owner(struct process *p)
{
	return p->owner;
}

/* The process that has this pid now, or had it last; NULL: none is known. */
struct process *process_find(struct process_table *, pid_t pid);
/* The process with this id, NULL if it was freed. */
struct process *process_by_id(struct process_table *, uint64_t id);
/* process_find(), or a new process without mappings. NULL: no memory. */
struct process *process_get(struct process_table *, pid_t pid);
/* exec: a new process without mappings. NULL: no memory. */
struct process *process_exec(struct process_table *, pid_t pid, uint64_t time, const char *comm);
/* fork of a process (not of a thread): the child has its parent's mappings and name. NULL: no
 * memory. */
struct process *process_fork(struct process_table *, pid_t parent, pid_t child);
/* A thread has exited: forgets its name. true: the process has ended with it, unless process_ran()
 * is called later. `p` may be NULL. */
bool process_thread_exited(struct process_table *, struct process *p, pid_t tid, uint64_t time);
/* A sample of this thread has arrived. If /proc does not show the other threads, the exit of the
 * main thread counts as the end of the process; a sample of another thread shows that it goes on.
 */
void process_ran(struct process *, pid_t tid);

/* Adds a mapping; those that it overlaps are shortened, split or removed. 0; -ENOMEM; -E2BIG: it
 * has PROCESS_MAX_MAPPINGS. */
int process_map(struct process *, const struct process_mapping *);
/* Removes the mappings that are not `seen` and were mapped at `kept_since` or before; as past
 * mappings they end at `time`. */
void process_drop_unseen(struct process *, uint64_t time, uint64_t kept_since);
/* Frees all its mappings, past mappings included. */
void process_forget_mappings(struct process *);
/* The mappings of all processes, and the process that has most; NULL: none has any. */
uint64_t process_mappings(const struct process_table *);
struct process *process_largest(const struct process_table *);
/* Index of the first mapping that ends above addr. */
uint32_t process_first_above(const struct process *, uint64_t addr);
/* The mapping that holds addr, or NULL. Valid until the mappings change. */
struct process_mapping *process_mapping(struct process *, uint64_t addr);
/* The mapping that held addr at that time, past mappings included; or NULL. */
struct process_mapping *process_mapping_at(struct process *, uint64_t addr, uint64_t time);

/* Ends processes whose pid no longer exists although no record said so; then frees those that ended
 * before `before` and for which keep() returns false. before 0: frees none. */
void process_sweep(struct process_table *, uint64_t before,
		   bool (*keep)(void *arg, struct process *), void *arg);
uint64_t process_count(const struct process_table *); /* running, or not freed yet */
void process_each(struct process_table *, void (*each)(void *arg, struct process *), void *arg);

/* Sets the name that a thread has had since `since`, CLOCK_MONOTONIC ns, unless a later name is
 * known. It is forgotten when the thread exits, or with the process. 0 or -ENOMEM. */
int process_thread_comm(struct process_table *, pid_t pid, pid_t tid, const char *comm,
			uint64_t since);
/* The name of a thread of the process, or of the process if the thread's is not known. */
const char *process_comm(struct process_table *, const struct process *, pid_t tid);
#endif
