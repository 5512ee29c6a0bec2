/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a spool's segment: records, each a profile with a checksum, one after the other.
 * docs/internals/spool.md describes them. Accesses no files. [any thread]
 */
#ifndef SPOOL_SEGMENT_H
#define SPOOL_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "spool/internal/profile.h"

#define SPOOL_MAX_PROFILE (256u << 20) /* bytes of a profile before they are compressed */

/* A record, and its place in its segment. */
struct spool_record {
	uint64_t stored_ns; /* CLOCK_REALTIME: when it was written */
	uint64_t samples;   /* that the profile represents */
	uint32_t offset, bytes;
};

/* Appends a record. 0; -EMSGSIZE: the profile has more bytes than SPOOL_MAX_PROFILE; -ENOMEM. */
int spool_record_encode(const struct fusee_profile *, uint64_t stored_ns, uint64_t samples,
			struct buf *);
/* The profile of a record. 0; -EBADMSG: it is damaged; -ENOMEM. */
int spool_record_decode(const void *record, size_t bytes, struct spool_profile **ret);
/* Calls each() for every undamaged record from offset `from` on, in order, until it returns an
 * error, which is returned. *damaged: the number of byte ranges that are not records. */
int spool_segment_scan(const void *bytes, size_t len, size_t from,
		       int (*each)(void *arg, const struct spool_record *), void *arg,
		       uint64_t *damaged);
#endif
