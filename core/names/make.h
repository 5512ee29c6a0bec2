/* SPDX-License-Identifier: Apache-2.0 */
/* In the worker: the table of names of a file. */
#ifndef NAMES_MAKE_H
#define NAMES_MAKE_H

#include "base/buf.h"
#include "symbols/symbols.h"

/* Appends the table to an empty buf. quality: see struct names_head, called when all is read. 0;
 * -ENOTSUP: there can be none, as addresses of the file have no spans or a dwz file is missing;
 * -EFBIG: the table would be too large; -ENOMEM. */
int names_make(struct buf *, struct symbols *, uint32_t (*quality)(const struct symbols *));
#endif
