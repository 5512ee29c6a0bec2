/* SPDX-License-Identifier: Apache-2.0 */
/* A profile from a file's bytes: a pprof file, gzipped or not, the text of `perf script`, folded
 * stacks, or a file of speedscope. Its content decides, not its name. */
#ifndef IMPORT_READ_H
#define IMPORT_READ_H

#include <stddef.h>

#include <fusee/profile.h>

struct profile_file;

/* 0 or -errno; then *text is a static sentence about the error. The bytes may be freed after the
 * call. */
int profile_read(const void *bytes, size_t len, struct profile_file **ret, const char **text);
/* Borrowed; valid until profile_file_free(). */
const struct fusee_profile *profile_of(const struct profile_file *);
void profile_file_free(struct profile_file *); /* NULL is fine */
#endif
