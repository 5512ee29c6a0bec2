/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a profile in the format that the file's ending names. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "base/buf.h"
#include <fusee/profile.h>

/* .pb.gz and .pprof, .folded, .html, .speedscope.json, .json; "-" is stdout, as .pb.gz. On an error
 * *error is one sentence that the caller frees (NULL: no memory). */
int output_check(const char *path, char **error); /* is there such a format; 0 or -EINVAL */
/* Bytes that were made already; path is a file's, as below. */
int output_bytes(const struct buf *, const char *path, char **error);
/* Whole or not at all: a temporary file beside it is renamed. 0 or -errno. */
int output_write(const struct fusee_profile *, const char *path, char **error);
#endif
