/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a command writes bytes: a file, a pipe or a descriptor. "-", /dev/stdout, /dev/stderr and
 * /dev/fd/N are descriptors that are open. Where a function has `error`, *error is one sentence
 * after an error, which the caller frees (NULL: no memory).
 */
#ifndef CONSOLE_OUTFILE_H
#define CONSOLE_OUTFILE_H

#include "base/buf.h"

/* Before the work: could 1 MiB be written there now? An existing file is not changed, and nothing
 * new remains. 0 or -errno. */
int outfile_try(const char *path, char **error);
/* A file is written completely or not at all; the file that was there is PATH.old then. A named
 * pipe waits for its reader, until a signal that ends a recording. 0 or -errno. */
int outfile_write(const struct buf *, const char *path, char **error);
/* Writes the bytes to a new file of mode 0600 whose name ends with `suffix`, in $TMPDIR, /tmp or
 * /var/tmp. 0, and *path is its name, which the caller frees; or -errno. */
int outfile_save(const struct buf *, const char *suffix, char **path);

/* The open descriptor that the path means. -1: it is another file. */
int outfile_descriptor(const char *path);
#endif
