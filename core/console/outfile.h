/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a command: a file, a pipe or an open descriptor ("-", /dev/stdout, /dev/stderr,
 * /dev/fd/N). If a function with `error` fails, *error is a sentence that the caller frees (NULL:
 * no memory).
 */
#ifndef CONSOLE_OUTFILE_H
#define CONSOLE_OUTFILE_H

#include "base/buf.h"

/* Checks before the work whether 1 MiB could be written there. An existing file is not changed, and
 * nothing new remains. 0 or -errno. */
int outfile_try(const char *path, char **error);
/* A file is written completely or not at all; an existing file becomes PATH.old. A named pipe waits
 * for its reader, until a signal that ends a recording. 0 or -errno. */
int outfile_write(const struct buf *, const char *path, char **error);
/* Writes the bytes to a new file of mode 0600 whose name ends with `suffix`, in $TMPDIR, /tmp or
 * /var/tmp. 0, and *path is its name, which the caller frees; or -errno. */
int outfile_save(const struct buf *, const char *suffix, char **path);

/* The open descriptor that the path names. -1: it names none. */
int outfile_descriptor(const char *path);
#endif
