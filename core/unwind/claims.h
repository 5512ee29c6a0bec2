/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is in no file: which unwinder claimed which memory of a process, who steps it and who
 * names its frames. Plugins are asked when a sample falls into such memory. For one thread.
 */
#ifndef UNWIND_CLAIMS_H
#define UNWIND_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/plugin.h"
#include "process/process.h"

struct claims;

struct claim {
	uint64_t lo, hi, arg;
	uint32_t unwinder; /* index in the set */
	uint32_t flags;    /* enum fusee_claim_flags */
};

/* What ops->symbolize() is handed: whoever wants names begins their struct with it. */
struct fusee_frame_out {
	int (*frame)(struct fusee_frame_out *, const struct fusee_source_frame *);
};

/* What unwinders are handed in the agent; the process_* calls and frame() are for these claims. */
extern const struct fusee_host claims_host;

int claims_new(struct claims **ret, const struct plugin_set *unwinders); /* 0 or -ENOMEM */
void claims_free(struct claims *); /* detaches all; NULL is fine */
/*
 * The claim of addr, in a mapping without a file (or whose file is not readable); the unwinders are
 * asked if there is none, at most once a second for a mapping. NULL: nobody's. Good until the next
 * call. *generation: of the process's code, 0 if nobody looked at it.
 */
const struct claim *claims_at(struct claims *, struct process *, const struct process_mapping *,
			      uint64_t addr, uint64_t time, uint32_t *generation);
/* Were the unwinders asked about code of this process? Then what they did not claim to step is
 * stepped by the native ones. */
bool claims_were_offered(const struct claims *, uint64_t process);
/* Claims to step code in [lo, hi), in order of address. claims may be NULL. */
void claims_each_step(const struct claims *, uint64_t process, uint64_t lo, uint64_t hi,
		      void (*each)(void *arg, const struct claim *), void *arg);
/* Lets the unwinders look what is new: before frames are named. */
void claims_refresh(struct claims *);
/* Names a frame of the process with this id; the claim's unwinder is asked, where there is no claim
 * all that know the process. *type: the unwinder's frame type. How many source frames out got, 0:
 * not known; or -errno. */
int claims_name(struct claims *, uint64_t process, uint64_t addr, uint32_t generation,
		struct fusee_frame_out *out, const char **type);
/* What an unwinder's step emitted in this process. 0, or -errno: it is lost. */
int claims_record(struct claims *, struct process *, uint32_t unwinder,
		  const struct fusee_emission *);
/* Frames that its step pushed in this process are to be named by claims_name_pushed(), as long as
 * it is marked; likewise. */
void claims_expect_pushed(struct claims *, struct process *, uint32_t unwinder);
int claims_name_pushed(struct claims *, uint64_t process, uint32_t unwinder, const uint64_t v[2],
		       struct fusee_frame_out *out, const char **type);
/* Marks processes whose frames are still to be named, for claims_is_marked(). */
void claims_unmark(struct claims *);
void claims_mark(struct claims *, uint64_t process);
bool claims_is_marked(const struct claims *, uint64_t process);
/* The process is about to be freed. */
void claims_forget(struct claims *, uint64_t process);
#endif
