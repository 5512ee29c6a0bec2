/* SPDX-License-Identifier: Apache-2.0 */
/* Text from foreign places: a thread's name that was cut in a character, a file name in Latin-1. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Length of the well-formed character at p (1 to 4 bytes), 0: none. len > 0. */
size_t utf8_char(const char *p, size_t len);
bool utf8_valid(const char *p, size_t len);
/* Appends p, each byte that is no part of a character as U+FFFD. 0 or -ENOMEM. */
int utf8_clean(struct buf *out, const char *p, size_t len);
/* The same without control characters (C1 ones start escape sequences in some terminals). */
bool utf8_printable(const char *p, size_t len);
int utf8_clean_printable(struct buf *out, const char *p, size_t len);
#endif
