/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes processes' mappings to the BPF sampler. They are written into memory that the programs
 * read, so no call waits for the kernel. core/pipeline/kernel_view.c decides when to call what.
 * Times are CLOCK_MONOTONIC nanoseconds. For one thread.
 */
#ifndef BPF_PUBLISH_H
#define BPF_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/sampler.h"
#include "process/process.h"
#include "unwind/claims.h"
#include "unwind/made_code.h"

/* Memory without a file that may be stepped in the kernel: a mapping's lo and since. */
struct anonymous_code {
	uint64_t lo, since;
};

/* What of a process is in the kernel. Owned by the caller; zeros: nothing is. */
struct published {
	struct process *process; /* borrowed while it is published */
	uint32_t chunk;          /* the first map chunk; 0: nothing is published */
	uint32_t version;        /* of what is published; rises each time, for all processes */
	uint32_t program;        /* 1 + a language unwinder that has claimed code of it; 0: none */
	bool awaits_program;     /* published without the program of a language unwinder */
	bool lacks_table;        /* a table found no room: its file's code is not published */
	bool blurred;            /* not all of what changed before it was written was marked */
};

/* What is published of a process. */
struct publication {
	struct process *process;
	const struct claims *claims;            /* NULL: none */
	const struct made_code *made;           /* tables of memory without a file; NULL: none */
	const struct anonymous_code *anonymous; /* in any order */
	uint32_t nanonymous;
};

/* Publishes the process's mappings, but for those whose files are not ready, in place of what was
 * published before. The kernel unwinds over them at once, but not where it gave out memory that no
 * bpf_publish_confirm() covers yet. 0; or -ENOSPC, -errno: then nothing is published. */
int bpf_publish(struct bpf_sampler *, struct published *, const struct publication *);
/* All records of mappings until that time have been read, and what they changed is published. */
void bpf_publish_confirm(struct bpf_sampler *, const struct published *, uint64_t as_of);
/* The process is unknown to the kernel from now on. */
void bpf_publish_withdraw(struct bpf_sampler *, struct published *);
/* Sets used[file] of each file with an id below n that published mappings name. Without a sampler
 * (NULL) this and the next function do nothing. */
void bpf_publish_mark_files(const struct bpf_sampler *, bool *used, uint32_t n);
/* sent_keys_forget(). 0 or -errno. */
int bpf_publish_forget_sent(struct bpf_sampler *, bool (*of)(void *arg, uint64_t process),
			    void *arg);
/* No published mapping names the file, and its id may become another file's: frees its tables. */
void bpf_publish_forget_file(struct bpf_sampler *, uint32_t file);
/* A table that an unwinder of the set has made: of a file, or (0) of memory without a file. */
struct touched_table {
	uint32_t file, unwinder;
	uint64_t made; /* as of made_code_table() */
};

/* A walk in user space has read these pages of the table: loads them, so that the kernel can walk
 * such a stack. */
void bpf_publish_touched(struct bpf_sampler *, const struct touched_table *, const uint32_t *pages,
			 uint32_t n);
/* How many map chunks are free, and how many belong to it. */
uint32_t bpf_publish_free_chunks(const struct bpf_sampler *);
uint32_t bpf_publish_chunks(const struct bpf_sampler *, const struct published *);
/* For assertions: is the kernel's copy that of p? */
bool bpf_publish_holds(const struct bpf_sampler *, const struct published *);

/* Is there code between these addresses over which the kernel unwinds stacks of the process? */
bool bpf_publish_has(const struct bpf_sampler *, const struct published *, uint64_t lo,
		     uint64_t hi);

/* Calls each() for what is published and not confirmed. when: memory was last given out then where
 * the process had code. */
void bpf_publish_each_unconfirmed(struct bpf_sampler *,
				  void (*each)(void *arg, struct published *, uint64_t when),
				  void *arg);
/* The program of a language unwinder is loaded when the first process needs it. true: since the
 * last call a program became ready or could not be loaded, so processes with awaits_program are to
 * be published again. Does not wait. */
bool bpf_publish_poll_programs(struct bpf_sampler *);
/* The same, but waits for the programs that published processes await, or that were named to
 * bpf_sampler_load_languages(). */
bool bpf_publish_wait_programs(struct bpf_sampler *);
/* Is there something unconfirmed, a program being loaded, or do the rings hold stacks that the
 * kernel would have unwound if it knew more? Costs a few reads of memory. */
bool bpf_publish_is_pending(const struct bpf_sampler *);
#endif
