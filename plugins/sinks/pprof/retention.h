/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of profile files, oldest first: by age and by the sum of their sizes. */
#ifndef PPROF_RETENTION_H
#define PPROF_RETENTION_H

#include <stdint.h>

struct retention {
	uint64_t keep_ns, max_size; /* limits of age and of bytes; 0: no limit */
	uint64_t bytes;   /* of all files of this sink: at the last scan, and written since */
	uint64_t next_ns; /* CLOCK_REALTIME of the next scan for files that are too old */
	uint64_t too_old, too_many; /* files removed since the start, by limit */
};

/* Scans the directory: removes unfinished files of runs that have ended, files that are too old,
 * and then the oldest files until `need` more bytes fit. 0 or -errno. */
int retention_scan(struct retention *, int dir, uint64_t need);
/* Scans if next_ns has come or `need` more bytes don't fit. 0 or -errno. */
int retention_make_room(struct retention *, int dir, uint64_t need);
#endif
