/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read and write them. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdint.h>

/* 1234567 -> "1,234,567" */
char *text_number(char buf[32], uint64_t);
/* 18432 -> "18 kB", 1.2 MB .. (thousands) */
char *text_bytes(char buf[32], uint64_t);
/* "10s", "1.5m", "2h", "250ms", "90" (seconds) -> ns. 0 or -EINVAL. */
int text_duration(const char *, uint64_t *ns);
/* "64KiB", "16kB", "8k", "4096" -> bytes. 0 or -EINVAL. */
int text_size(const char *, uint64_t *bytes);
/* "99", "99Hz" -> samples a second, 0.1 to 20000. 0 or -EINVAL. */
int text_rate(const char *, double *hz);
#endif
