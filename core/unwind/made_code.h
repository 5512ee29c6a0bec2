/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code made at run time that no unwinder claims to step. Where stacks pass through it, its bytes
 * are read a few times a second, and the worker makes a table of them, as of a file. So the native
 * unwinders step it in the kernel and in user space. A sample that was unwound by such a table is
 * right if the code was the same when it was read before the sample and when it is read after it:
 * it waits until then. For one thread. Times are CLOCK_MONOTONIC ns.
 */
#ifndef UNWIND_MADE_CODE_H
#define UNWIND_MADE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/plugin.h"
#include "process/process.h"
#include "worker/worker.h"

struct made_code;

struct made_counts {
	uint64_t regions;  /* that are followed */
	uint64_t readings; /* so far */
	uint64_t changed;  /* of these found other code than before */
	uint64_t tables;   /* that the worker made */
	uint64_t failed;   /* it made none */
	uint64_t bytes;    /* of memory held */
};

/* changed: the process has another table. 0 or -ENOMEM. */
int made_code_new(struct made_code **ret, struct worker *, const struct plugin_set *unwinders,
		  void (*changed)(void *arg, struct process *), void *arg);
/* After the worker has stopped. NULL is fine, there and in the functions without a mapping. */
void made_code_free(struct made_code *);
/* A sample of that time has a frame here. exact: addr was interrupted; otherwise it is the last
 * byte of a call. */
void made_code_note(struct made_code *, struct process *, const struct process_mapping *,
		    uint64_t addr, bool exact, uint64_t time);
/* The unwinder's table of the mapping; NULL: none. *id: of this content, never used again. */
const struct inspection_slab *made_code_table(const struct made_code *, uint64_t process,
					      const struct process_mapping *, uint32_t unwinder,
					      uint64_t *id);
/* Was this place noted, and no row found for it when the code was read since? exact: as above. */
bool made_code_lacks_row(const struct made_code *, uint64_t process, uint64_t addr, bool exact);
/* Reads what is due. all: whatever samples wait for. To be called a few times a second. */
void made_code_update(struct made_code *, bool all);

enum made_verdict {
	MADE_NONE,   /* the memory is not followed, or not any more */
	MADE_OTHER,  /* no table has this code */
	MADE_SAME,   /* the table was right at that time */
	MADE_LATER,  /* not known yet */
	MADE_UNSURE, /* it was not read again, or another unwinder has stepped it */
	MADE_CHANGED,
	MADE_REFUTED, /* the table came too late for this step, and contradicts it */
};

/* A frame of a sample. */
struct made_frame {
	uint64_t process, addr, time;
	bool guessed; /* no table has stepped it: rbp is taken for its frame pointer */
};

/* late: it waits no longer. */
enum made_verdict made_code_verdict(const struct made_code *, const struct made_frame *, bool late);
/* Is code of this process followed? */
bool made_code_follows(const struct made_code *, uint64_t process);
/* Was code read since the last call? */
bool made_code_was_read(struct made_code *);
void made_code_counts(const struct made_code *, struct made_counts *);
/* The process is about to be freed. */
void made_code_forget(struct made_code *, uint64_t process);
#endif
