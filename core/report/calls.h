/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of a model as a tree of calls, for the flame graph page. */
#ifndef REPORT_CALLS_H
#define REPORT_CALLS_H

#include "base/slots.h"
#include "report/model.h"

struct render_call {
	uint32_t function;       /* of the model */
	uint32_t parent, depth;  /* the root is call 0, at depth 0 */
	uint32_t first, next;    /* child, sibling in the order of names; 0: none */
	uint32_t flags;          /* RENDER_INLINED: of all calls; RENDER_GUESSED: of any call */
	uint32_t line;           /* 0: unknown, or several */
	int64_t self, base_self; /* never negative */
};

struct render_calls {
	struct render_call *calls;
	uint32_t n;
	uint32_t *order;   /* the model's functions by name */
	uint32_t *rank;    /* the position of a function in that order */
	uint32_t negative; /* stacks that are not in the tree, because a width cannot be negative */

	/* private */
	struct buf buf;
	struct slots slots; /* by caller and function */
};

/* 0 or -ENOMEM. Borrows the model. */
int render_calls_make(struct render_calls *, const struct render_model *);
void render_calls_free(struct render_calls *);
#endif
