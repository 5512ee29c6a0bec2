/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONSOLE_PAGER_H
#define CONSOLE_PAGER_H

#include "base/buf.h"

/* Writes a text to stdout: through $PAGER (default: less -FRX) if stdout is a terminal and the text
 * has more lines. 0 or -errno. */
int pager_write(const struct buf *);
#endif
