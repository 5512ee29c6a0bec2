/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for the code of a file that has no description. */
#ifndef DWARF_CODEFILE_H
#define DWARF_CODEFILE_H

#include <fusee/helpers.h>

#include "../rows.h"

/* CPU time for the text without a description of a file, which is read in pieces: inspect() has 5
 * s. Text that was not read then has no rows: build->unread. The comparison with libdw has no
 * limit. */
#define CODEFILE_CPU_NS 3500000000ull
extern uint64_t codefile_cpu_ns;
/* The same as time that passes, for a worker that gets little of a CPU: after 20 s inspect() is
 * ended, and the file would have no rows at all. */
#define CODEFILE_WALL_NS 14000000000ull
extern uint64_t codefile_wall_ns;

/* Of more than so much text without a description (Chromium's) the time is enough for a few
 * hundredths only. So none of it is read: it is known at once that the file has no rows there. */
#define CODEFILE_MOST (128ull << 20)
extern uint64_t codefile_most;

/* Of more bytes of text than this a brief table has descriptions only, and none of it is read. */
#define CODEFILE_LONG (4u << 20)

/* Adds rows to `ret` for the text that has none in `known`. In a brief table, if that may take
 * long, rows at which a step stops. 0, -ENOMEM, -E2BIG. */
int codefile_add(struct table_build *, const struct fusee_unwinder_host *, uint64_t file,
		 const struct fusee_file_info *, const struct rows *known, struct rows *ret);
/* The same for the stubs of a procedure linkage table, which lld describes nowhere. */
int codefile_add_plt(const struct table_build *, const struct fusee_unwinder_host *, uint64_t file,
		     const char *name, struct rows *ret);
/* The address behind the code that begins at a program's entry; at most 64 bytes are decoded. */
uint64_t codefile_entry_end(const struct fusee_unwinder_host *, uint64_t file, uint64_t entry);
#endif
