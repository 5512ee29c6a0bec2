/* SPDX-License-Identifier: Apache-2.0 */
/* pprof's profile.proto (github.com/google/pprof/proto/profile.proto), gzipped. */
#ifndef PROFILE_PPROF_H
#define PROFILE_PPROF_H

#include <stdbool.h>

#include "base/buf.h"
#include <fusee/profile.h>

/* Appends the encoded profile. 0 or -errno. Losses go into comments, `resource` labels onto every sample that
 * has no label of that name. */
int pprof_encode(const struct fusee_profile *, bool gzip, struct buf *out);

/* A decoded profile owns everything in it. Accepts gzip or plain. On error *text (static or in the object's memory;
 * never NULL) says what is wrong. Losses come back from the comments that pprof_encode() wrote. */
struct pprof_file;
int pprof_decode(const void *bytes, size_t len, struct pprof_file **ret, const char **text);
const struct fusee_profile *pprof_profile(const struct pprof_file *);
void pprof_free(struct pprof_file *);
#endif
