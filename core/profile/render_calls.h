/* SPDX-License-Identifier: Apache-2.0 */
/* A model's stacks as a tree of calls, as the flame graph page has it. */
#ifndef PROFILE_RENDER_CALLS_H
#define PROFILE_RENDER_CALLS_H

#include "base/dict.h"
#include "profile/render_model.h"

struct render_call {
	uint32_t function;      /* of the model */
	uint32_t parent, depth; /* the root is call 0, at depth 0 */
	uint32_t first, next;   /* child, sibling in the order of names; 0: none */
	uint32_t flags;         /* RENDER_INLINED: at every call; RENDER_GUESSED: at one at least */
	uint32_t line;          /* 0: unknown, or not always the same */
	int64_t self, base_self; /* never negative */
};

struct render_calls {
	struct render_call *calls;
	uint32_t n;
	uint32_t *order;   /* the model's functions by name */
	uint32_t *rank;    /* where a function stands in that order */
	uint32_t negative; /* stacks left out: a width can't show less than nothing */

	/* the tree's own */
	struct buf buf;
	struct dict keys;
};

/* 0 or -ENOMEM. The model must live as long. */
int render_calls_make(struct render_calls *, const struct render_model *);
void render_calls_free(struct render_calls *);
#endif
