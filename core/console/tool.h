/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program of the user's PATH as a filter: Graphviz's dot, objdump. */
#ifndef CONSOLE_TOOL_H
#define CONSOLE_TOOL_H

#include "base/buf.h"

/* Runs argv[0] with `in` (NULL: nothing) as its standard input and appends its standard output to
 * `out`, at most 64 MiB. Waits for its end. 0; -ENOENT: PATH has no such program; -EIO: it failed,
 * with its own message on stderr; or -errno. */
int tool_run(char *const *argv, const struct buf *in, struct buf *out);
#endif
