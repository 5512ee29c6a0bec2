/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a profile in the format that the file's suffix selects. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "base/buf.h"
#include <fusee/profile.h>

/* Suffixes: .pb.gz and .pprof, .folded, .html, .speedscope.json, .json; "-" is stdout, as .pb.gz.
 * On an error *error is one sentence that the caller frees (NULL: no memory). */

/* Does the suffix select a format? 0 or -EINVAL. */
int output_check(const char *path, char **error);
/* Writes bytes, as output_write() writes a profile. */
int output_bytes(const struct buf *, const char *path, char **error);
/* Writes the file completely or not at all: a temporary file beside it is renamed. 0 or -errno. */
int output_write(const struct fusee_profile *, const char *path, char **error);
#endif
