/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of one process's code, for claims.c and claims_host.c only. */
#ifndef UNWIND_CLAIMS_STATE_H
#define UNWIND_CLAIMS_STATE_H

#include <errno.h>

#include "base/hashmap.h"
#include "unwind/internal/claim_list.h"
#include "unwind/claims.h"
#include "unwind/internal/code_budget.h"
#include "files/files.h"

struct claims {
	struct opener *opener;                        /* borrowed; NULL: none */
	const struct plugin_set *unwinders;           /* borrowed */
	struct hashmap processes;                     /* id -> struct process_code * */
	void (*changed)(void *arg, struct process *); /* claims or words are others; or NULL */
	void *arg;
	struct user_budget budget;
	uint64_t forgot_ns; /* when the last step of forgetting was taken */
};

/* Plugins have its address as their handle of the process. */
struct process_code {
	struct claims *claims;
	struct process *process; /* borrowed */
	uint64_t identity;       /* procfs_identity(); 0: the process had ended already */
	uint64_t start_ticks;    /* since boot; 0: not known yet */
	uint32_t generation;     /* raised when the code changes */
	uint32_t attached;       /* bit i: unwinder i has this handle */
	struct claim_list list;
	struct process_words {
		uint32_t *at; /* owned; NULL: none */
		uint64_t n;
	} words[FILES_MAX_UNWINDERS];          /* for the steps, by unwinder */
	uint64_t library[FILES_MAX_UNWINDERS]; /* 1 + bias that mapped() was last called with; 0:
						  none */
	struct {
		uint64_t since;    /* when the second began in which n mappings were */
		uint64_t last, lo; /* when, and where, a mapping last was */
		uint64_t pause;    /* until that mapping is again, in ns */
		uint32_t n;
	} offered;          /* for claims */
	uint64_t refreshed; /* when plugins last refreshed their claims */
	uint64_t bytes;     /* of the budget */
	struct {
		uint64_t bytes; /* of emissions */
		uint64_t most;  /* of them, until those of removed code are forgotten */
		uint64_t since; /* from then on steps emit anew; 0: not yet */
		uint32_t
			passes; /* of the kernel's forgetting so far; 0: nothing is forgotten now */
		bool refused;   /* an emission found no room */
	} names;
	uint32_t uid; /* when the process was first seen; UINT32_MAX: not known */
	bool marked;
};

/* -EDQUOT: the process, its user or all have too much already. */
static inline int process_code_has_room(const struct process_code *p, const char *what)
{
	return code_budget_has_room(&p->claims->budget, p->uid, p->bytes, what) ? 0 : -EDQUOT;
}

/* What could not be added for want of memory is not subtracted either. */
static inline void process_code_add_bytes(struct process_code *p, int64_t bytes)
{
	if (bytes < -(int64_t)p->bytes)
		bytes = -(int64_t)p->bytes;
	if (!user_budget_add(&p->claims->budget, p->uid, bytes))
		p->bytes += (uint64_t)bytes;
}
#endif
