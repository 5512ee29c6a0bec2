/* SPDX-License-Identifier: Apache-2.0 */
/* Which files go, and when: by age and by the sum of sizes, oldest first. */
#ifndef PPROF_RETENTION_H
#define PPROF_RETENTION_H

#include <stdint.h>

struct retention {
	uint64_t keep_ns, max_size; /* 0: no limit */
	uint64_t bytes;   /* of all our files, as of the last look and what we wrote since */
	uint64_t next_ns; /* CLOCK_REALTIME: the next look for old ones */
	uint64_t too_old, too_many; /* removed since the start */
};

/* Looks at dir: removes what another run left unfinished, then what is too old, then the oldest
 * until `need` more bytes fit. 0 or -errno. */
int retention_look(struct retention *, int dir, uint64_t need);
/* The same, but only if it is time or `need` more bytes don't fit. */
int retention_make_room(struct retention *, int dir, uint64_t need);
#endif
