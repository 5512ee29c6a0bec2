/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of languages in a walk over the memory of a stopped thread: calls the native steps of
 * language unwinders, as bpf/language.h does in the kernel. For one thread.
 */
#ifndef UNWIND_WALK_LANGUAGE_H
#define UNWIND_WALK_LANGUAGE_H

#include <fusee/unwinder.bpf.h>

#include "base/hashmap.h"
#include "unwind/walk.h"

struct walk_guesses; /* unwind/internal/walk_learn.h */

/* Of all walks over stopped threads. */
struct walk_languages {
	struct hashmap emitted; /* keys that record() has */
	struct claims *claims;  /* of the walk at hand, as are the next members; borrowed */
	struct process *process;
	const struct plugin_set *unwinders;
	struct walk *out;
	/* What each language's step keeps in u->scratch, and whose it is now. */
	uint64_t scratch[FILES_MAX_UNWINDERS][8];
	uint32_t current;
	bool pushed;        /* a step has pushed frames in place of the machine's frame */
	bool ended;         /* a step ended with a reason: only machine frames follow */
	const char *reason; /* that reason; NULL: none */
};

/* What fusee_native.arg points at in each walk. */
struct walk_context {
	struct process *process;
	struct opener *opener;              /* NULL: none */
	const struct sample_memory *memory; /* of a stopped thread; NULL: there is a stack copy */
	struct walk_languages *languages;   /* NULL: none are walked */
	struct sample_returns returns;
	const struct sample_continuations *continuations;
	const struct sample_continuation *inside; /* the walk has passed its begin; NULL: none */
	uint32_t joined; /* number of the last whose end it has come to; 0: none */
	struct {
		uint32_t n, guessed;
	} before;             /* of the walk, before the frame at hand */
	uint32_t next_return; /* index of that which is looked at next */
	bool beyond;          /* the last step read above the stack copy */
	uint32_t stepped;     /* frames so far */
	bool proving;         /* neither the worker steps nor a guess */
	/* The innermost frame of code made at run time that nothing proves; pc 0: none. */
	struct fusee_unwind unproved;
	const struct walk_guesses *guesses; /* of such frames; NULL: none */
};

enum language_turn {
	LANGUAGE_NATIVE, /* the native unwinders step; the machine's frame is shown unless pushed */
	LANGUAGE_NEXT,   /* the step went to the caller; shown likewise */
	LANGUAGE_END,    /* the stack ends here and is complete; shown likewise */
	LANGUAGE_FULL,   /* there is no room for a frame */
};

struct walk_languages *walk_languages_new(void); /* NULL: no memory */
void walk_languages_begin(struct walk_languages *, struct walker *, struct process *,
			  struct walk *out);
void walk_languages_free(struct walk_languages *); /* NULL is fine */
/* The next walks emit anew. NULL is fine. */
void walk_languages_forget(struct walk_languages *);
/* Sets u->cfa to the CFA of this frame, 0 where no table has it. */
void walk_find_cfa(const struct walker *, struct fusee_native *, const struct process_mapping *);
/* Lets the language unwinder that claims the frame's code push all frames that belong to the
 * machine's. claim: of memory without a file; NULL: none. Where languages are not walked, it calls
 * steps that read nothing (FUSEE_CLAIM_READS_NOTHING), and sets out->passed for others. */
enum language_turn walk_language_turn(struct walker *, struct fusee_native *,
				      const struct process_mapping *, const struct claim *,
				      struct walk *out);
#endif
