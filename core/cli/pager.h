/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include "base/buf.h"

/* To stdout; through $PAGER (else less -FRX) when that is a terminal and the text is longer than
 * it. 0 or -errno. */
int pager_write(const struct buf *);
#endif
