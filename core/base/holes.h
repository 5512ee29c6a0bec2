/* SPDX-License-Identifier: Apache-2.0 */
/* Files that claim bytes which no disk holds. [any thread] */
#ifndef BASE_HOLES_H
#define BASE_HOLES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether most of a range of 1 MiB or more of a file is holes: a file that takes no disk space can
 * claim gigabytes of zeros. Also false if the file system does not report holes. Changes the
 * descriptor's file offset. */
bool holes_prevail(int fd, uint64_t offset, uint64_t len);
#endif
