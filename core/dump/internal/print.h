/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the threads of a dump with their stacks. */
#ifndef DUMP_PRINT_H
#define DUMP_PRINT_H

#include <stdbool.h>

#include "base/buf.h"
#include "dump/internal/threads.h"
#include <fusee/profile.h>

/* One process. */
struct dump_view {
	pid_t pid;
	const struct dump *dump;
	const struct fusee_profile *profile; /* a sample for each thread whose stack was taken */
	/* Frames of an interpreter's own code, and those that a language hides, also in threads
	 * with frames of the language. */
	bool native;
};

/* Both append to a buf. */
void dump_print_text(const struct dump_view *, struct buf *);
void dump_print_json(const struct dump_view *, struct buf *);
#endif
