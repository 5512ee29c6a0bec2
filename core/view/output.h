/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a profile in the format that the file's suffix selects. */
#ifndef VIEW_OUTPUT_H
#define VIEW_OUTPUT_H

#include <stdbool.h>

#include <fusee/profile.h>

struct render_options;

/* Suffixes: .pb.gz and .pprof, .folded, .html, .speedscope.json, .json; "-" and other open
 * descriptors (console/outfile.h) get .pb.gz, as do addresses, http:// and https://, by sink.http.
 * On an error *error is one sentence that the caller frees (NULL: no memory). */

/* Does the suffix select a format? 0 or -EINVAL. */
int output_check(const char *path, char **error);
/* Is it pprof? Other formats have no build ids and addresses. */
bool output_is_pprof(const char *path);
/* outfile_write() with the profile in that format; if that fails, the profile is saved in another
 * folder, and *error names the file. 0 or -errno. */
int output_write(const struct fusee_profile *, const struct render_options *, const char *path,
		 char **error);
#endif
