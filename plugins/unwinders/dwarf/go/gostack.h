/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the runtime of Go grows a goroutine's stack: runtime.morestack saves the goroutine's place in
 * its `g` and goes on, in runtime.newstack, on the stack of the thread's scheduler. What that place
 * is called differs between releases, so it is read from the runtime's own instructions.
 */
#ifndef DWARF_GOSTACK_H
#define DWARF_GOSTACK_H

#include <fusee/gotable.h>

#include "../rows.h"

#define GOSTACK_CALLS 8

struct go_stack {
	uint32_t morestack; /* rule of runtime.morestack, once it is on the other stack; 0: not
			       known */
	/* The ends of newstack's calls that give the goroutine away: what runs below them is the
	 * scheduler, for another goroutine. Ascending. */
	uint64_t given[GOSTACK_CALLS];
	size_t n;
};

/* Where anything is not as expected, morestack stays 0. */
void gostack_find(struct table_build *, const struct fusee_go_table *, struct go_stack *);
#endif
