/* SPDX-License-Identifier: Apache-2.0 */
/* Return addresses that uretprobes have replaced: they lead to the process's uprobe page, and what
 * they were is known to the kernel alone. */
#ifndef UNWIND_WALK_RETURNS_H
#define UNWIND_WALK_RETURNS_H

#include <fusee/unwinder.bpf.h>

#include "unwind/walk_language.h"

/* Is pc in the uprobe page, or in the call that a uprobe is? m: the mapping of the frame's code;
 * NULL: none. */
bool walk_in_uprobe_page(struct fusee_native *, const struct process_mapping *m);
/* pc is there: sets it to the return address that was replaced, or to where the thread goes on.
 * false: the sample does not say what it was, or the thread was interrupted in the page itself. */
bool walk_original_return(struct fusee_native *);
#endif
