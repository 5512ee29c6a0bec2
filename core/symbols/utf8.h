/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SYMBOLS_UTF8_H
#define SYMBOLS_UTF8_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Is it UTF-8 (no surrogates, nothing overlong) without control characters? */
bool utf8_is_clean(const char *, size_t len);
/* Appends it with U+FFFD for each byte that is not. 0 or -ENOMEM. */
int utf8_clean(struct buf *, const char *, size_t len);
#endif
