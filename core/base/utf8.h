/* SPDX-License-Identifier: Apache-2.0 */
/* Text whose encoding is not known to be UTF-8: names of threads that the kernel truncated within a
 * character, file names in Latin-1. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Length of the well-formed character at p, 1 to 4 bytes; 0: there is none. len > 0. */
size_t utf8_char(const char *p, size_t len);
bool utf8_valid(const char *p, size_t len);
/* Appends the text with each byte that is not part of a character as U+FFFD. 0 or -ENOMEM. */
int utf8_clean(struct buf *out, const char *p, size_t len);
/* The same two, but control characters are invalid as well (those of C1 begin escape sequences in
 * some terminals), and invisible characters that change how others are shown, as U+202E, which
 * reverses the text behind it. */
bool utf8_printable(const char *p, size_t len);
int utf8_clean_printable(struct buf *out, const char *p, size_t len);
#endif
