/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a sink's spool: made, checked and locked. */
#ifndef SPOOL_FOLDER_H
#define SPOOL_FOLDER_H

#include "base/buf.h"

/*
 * Opens DIR/NAME, and creates missing folders of it, for their owner only. No symbolic link is
 * followed in the complete path. Root's folders, and those around them, must be root's, and no
 * other user may be able to write to them (except sticky folders, as /tmp); an ordinary user's must
 * be their own. The folder is locked until its descriptor is closed. *fd, or -errno with a
 * malloc'ed sentence (NULL: no memory); -EWOULDBLOCK: another process or delivery has it.
 */
int spool_folder_open(const char *dir, const char *name, int *fd, char **text);

/* The name of a segment's file. */
void spool_segment_name(char name[32], uint64_t number);
/* Adds the numbers (uint64_t) of all segments of a folder, sorted. 0 or -errno. */
int spool_folder_segments(int dir, struct buf *numbers);
#endif
