/* SPDX-License-Identifier: Apache-2.0 */
/* pprof's profile.proto (github.com/google/pprof/proto/profile.proto), gzipped. */
#ifndef PROFILE_PPROF_H
#define PROFILE_PPROF_H

#include <stdbool.h>

#include "base/buf.h"
#include <fusee/profile.h>

/* Appends the encoded profile. 0 or -errno. Losses go into comments, `resource` labels onto every
 * sample that has no label of that name. */
int pprof_encode(const struct fusee_profile *, bool gzip, struct buf *out);

/* A decoded profile owns everything in it. Accepts gzip or plain. On error *text (static or in the
 * object's memory; never NULL) says what is wrong. What the model doesn't have is gone: a second
 * value of a label's key, drop_frames, doc_url. Losses come back from the comments that
 * pprof_encode() wrote. */
struct pprof_file;

/* Refused with -EFBIG: a file of more bytes than this uncompressed; and one whose messages take
 * more memory than real profiles of its size do, PPROF_MEMORY_BASE + its bytes *
 * PPROF_MEMORY_FACTOR. */
#define PPROF_MAX_BYTES (512ull << 20)
#define PPROF_MEMORY_BASE (64ull << 20)
#define PPROF_MEMORY_FACTOR 40
int pprof_decode(const void *bytes, size_t len, struct pprof_file **ret, const char **text);
const struct fusee_profile *pprof_profile(const struct pprof_file *);
void pprof_free(struct pprof_file *);
#endif
