/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is in no file: which unwinder claimed which memory of a process, and thus steps its
 * frames or symbolizes them. Memory is offered to the unwinders when a sample has a frame in it.
 * Processes are named by struct process's id, unwinders by their index in the set. For one thread.
 */
#ifndef UNWIND_CLAIMS_H
#define UNWIND_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/plugin.h"
#include "process/process.h"

struct claims;
struct opener;

struct claim {
	uint64_t lo, hi, arg;
	uint32_t unwinder;
	uint32_t flags; /* enum fusee_claim_flags */
};

/* What ops->symbolize() is handed. The caller's struct begins with it. */
struct fusee_frame_out {
	int (*frame)(struct fusee_frame_out *, const struct fusee_source_frame *);
};

/* The host of unwinders in the agent. Its process_*() calls and frame() work on these claims. */
extern const struct fusee_host claims_host;

int claims_new(struct claims **ret, const struct plugin_set *unwinders); /* 0 or -ENOMEM */
/* What reads targets' memory and opens their files; NULL: this process does. */
void claims_set_opener(struct claims *, struct opener *);
/* Limits the memory for claims, words and emissions; 0, the default: no limit. code_budget.h. */
void claims_set_limit(struct claims *, uint64_t bytes);
uint64_t claims_bytes(const struct claims *); /* of that memory */
void claims_free(struct claims *); /* detaches the plugins from all processes; NULL is fine */

/*
 * The claim of addr in a mapping without a file, or whose file is not readable. Memory that is not
 * claimed is offered to the unwinders, at most once a second for a mapping. NULL: not claimed.
 * Valid until the next call. *generation: of the process's code; 0: no memory.
 */
const struct claim *claims_at(struct claims *, struct process *, const struct process_mapping *,
			      uint64_t addr, uint64_t time, uint32_t *generation);
/* Was memory of this process offered? Then native unwinders step what is not claimed. */
bool claims_were_offered(const struct claims *, uint64_t process);
/* Calls each() for claims to step code in [lo, hi), in order of address. claims may be NULL. */
void claims_each_step(const struct claims *, uint64_t process, uint64_t lo, uint64_t hi,
		      void (*each)(void *arg, const struct claim *), void *arg);
/* Has a claim of this process FUSEE_CLAIM_REGISTERS? claims may be NULL. */
bool claims_follow(const struct claims *, uint64_t process);
/* The words that the unwinder's step reads of this process; NULL: none. Valid until they are set.
 */
const uint32_t *claims_words(const struct claims *, uint64_t process, uint32_t unwinder,
			     uint64_t *n);
/* Calls back when claims or words of a process have changed. */
void claims_set_listener(struct claims *, void (*changed)(void *arg, struct process *), void *arg);
/* The unwinder's mapped() is called for this mapping of a file that it has a table or claims of, if
 * it was not yet. */
void claims_library(struct claims *, struct process *, const struct process_mapping *,
		    uint32_t unwinder);
/* Calls mapped() of all unwinders for all of a process that it is called for: libraries, and at
 * most 256 mappings that may be claimed. Nothing is offered or refreshed in the second after that.
 */
void claims_offer_all(struct claims *, struct process *, uint64_t time);
/* Lets the unwinders look for new code. Before frames are symbolized. */
void claims_refresh(struct claims *);

/* The frame type of what an unwinder names. */
const char *claims_frame_type(const struct claims *, uint32_t unwinder);
/* Symbolizes a frame: the unwinder that claims addr does, or if none does, each that is attached to
 * the process. *type: the unwinder's frame type. Returns the number of source frames that `out`
 * received, 0: not known; or -errno. */
int claims_symbolize(struct claims *, uint64_t process, uint64_t addr, uint32_t generation,
		     struct fusee_frame_out *out, const char **type);
/* The same for a frame that the unwinder's step pushed: its words and flags are set. */
int claims_symbolize_pushed(struct claims *, uint64_t process, uint32_t unwinder,
			    const struct fusee_raw_frame *pushed, struct fusee_frame_out *out,
			    const char **type);
/* Hands an emission of the unwinder's step to its plugin. 0, or -errno: it is lost; -EDQUOT: too
 * many are kept. */
int claims_record(struct claims *, struct process *, uint32_t unwinder,
		  const struct fusee_emission *);
/* The unwinder's step pushed frames in this process, which are to be symbolized. At most once a
 * second the unwinders look for new code: a stack may have no other frames in claimed memory. */
void claims_expect_pushed(struct claims *, struct process *, uint32_t unwinder, uint64_t time);

/* Marks processes whose frames are still to be symbolized. */
void claims_unmark(struct claims *); /* all */
void claims_mark(struct claims *, uint64_t process);
bool claims_is_marked(const struct claims *, uint64_t process);
/* The process is about to be freed: detaches the plugins from it. */
void claims_forget(struct claims *, uint64_t process);
#endif
