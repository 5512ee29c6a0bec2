/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the threads of a dump with their stacks. */
#ifndef CLI_DUMP_PRINT_H
#define CLI_DUMP_PRINT_H

#include <stdbool.h>

#include "base/buf.h"
#include "sampling/dump.h"
#include <fusee/profile.h>

/* One process. */
struct dump_view {
	pid_t pid;
	const struct dump *dump;
	const struct fusee_profile *profile; /* a sample for each thread whose stack was taken */
	/* Is the file the interpreter of a language? Its frames are not shown in threads with
	 * frames of that language. NULL: all are shown. */
	bool (*is_interpreter)(void *arg, struct fusee_str path);
	void *arg;
};

/* Both append to a buf. */
void dump_print_text(const struct dump_view *, struct buf *);
void dump_print_json(const struct dump_view *, struct buf *);
#endif
