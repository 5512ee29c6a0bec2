// SPDX-License-Identifier: Apache-2.0
/* Holes of files. */
#include "base/holes.h"

#include <errno.h>
#include <unistd.h>

#define LEAST (1u << 20) /* bytes; reading a smaller sparse part costs little */
#define MAX_PARTS 1024   /* parts with data; what follows counts as data */

bool holes_prevail(int fd, uint64_t offset, uint64_t len)
{
	uint64_t at = offset, end = offset + len, data = 0;

	if (len < LEAST)
		return false;
	for (int i = 0; i < MAX_PARTS && at < end; i++) {
		off_t from = lseek(fd, (off_t)at, SEEK_DATA), to;

		if (from < 0 && errno != ENXIO)
			return false;
		if (from < 0 || (uint64_t)from >= end)
			return data < len / 2;
		to = lseek(fd, from, SEEK_HOLE);
		if (to <= from)
			return false;
		at = (uint64_t)to < end ? (uint64_t)to : end;
		data += at - (uint64_t)from;
	}
	return data + (end - at) < len / 2;
}
