/* SPDX-License-Identifier: Apache-2.0 */
/* The position up to which a spool was read: a small file that is written after each profile.
 * Writes alternate between two places, so that an incomplete write leaves the earlier position. */
#ifndef SPOOL_POSITION_H
#define SPOOL_POSITION_H

#include <stdint.h>

/* Everything before this offset of this segment was read; {0}: nothing. */
struct spool_position {
	uint64_t turn; /* of spool_position_write() */
	uint64_t segment, offset;
};

/* The newest undamaged position of the file, or {0}. */
void spool_position_read(int fd, struct spool_position *);
/* Writes it, with the next turn. 0 or -errno. */
int spool_position_write(int fd, struct spool_position *);
#endif
