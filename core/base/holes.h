/* SPDX-License-Identifier: Apache-2.0 */
/* Files that claim bytes which no disk holds. [any thread] */
#ifndef BASE_HOLES_H
#define BASE_HOLES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a part of a file, of a MiB or more, is for the most part holes: a file of no size on disk
 * can claim gigabytes of zeros. false also where the file system does not say. The position of the
 * descriptor changes. */
bool holes_prevail(int fd, uint64_t offset, uint64_t len);
#endif
