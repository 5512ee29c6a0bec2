/* SPDX-License-Identifier: Apache-2.0 */
/* pprof's profile.proto (github.com/google/pprof/proto/profile.proto), gzipped. */
#ifndef PPROF_PPROF_H
#define PPROF_PPROF_H

#include <stdbool.h>

#include "base/buf.h"
#include <fusee/profile.h>

/* Appends the encoded profile. Losses become comments (core/loss/loss.h); labels of `resource` are
 * added to every sample that has no label of that key. 0 or -errno. */
int pprof_encode(const struct fusee_profile *, bool gzip, struct buf *out);

/* A decoded file; owns its profile. */
struct pprof_file;

/* Limits of uncompressed bytes, and of the memory that the messages of a file take: base + bytes *
 * factor, which real profiles never reach. */
#define PPROF_MAX_BYTES (512ull << 20)
#define PPROF_MEMORY_BASE (64ull << 20)
#define PPROF_MEMORY_FACTOR 40
/* Decodes a file, gzip or plain. What struct fusee_profile has no field for is not kept: a second
 * value of a label's key, drop_frames, doc_url. Comments that pprof_encode() wrote of losses become
 * losses. 0; -EINVAL; -EFBIG: above a limit; -ENOMEM. *text is a static sentence about the error.
 */
int pprof_decode(const void *bytes, size_t len, struct pprof_file **ret, const char **text);
/* The same with another limit of uncompressed bytes, at most PPROF_MAX_BYTES. */
int pprof_decode_within(const void *bytes, size_t len, uint64_t max_bytes, struct pprof_file **ret,
			const char **text);
/* About how many bytes of memory the file holds. */
uint64_t pprof_file_bytes(const struct pprof_file *);
const struct fusee_profile *pprof_profile(const struct pprof_file *);
void pprof_free(struct pprof_file *);
#endif
