/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes and durations in the form in which people read and write them. The parsers return
 * 0 or -EINVAL, and write their result only with 0. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* 1234567 -> "1,234,567"; returns buf. */
char *text_number(char buf[32], uint64_t);
/* n bytes as 2n digits, terminated: out has 2n + 1 bytes. Returns out. */
char *text_hex(char *out, const void *bytes, size_t n);
/* Replaces each byte that is neither printable ASCII nor in `kept` by '?': text that reaches a
 * terminal may come from a process that a target or a server has taken over. */
void text_ascii(char *text, const char *kept);
/* 18432 -> "18 kB"; units are powers of 1000; returns buf. */
char *text_bytes(char buf[32], uint64_t);
/* "10s", "1.5m", "2h", "250ms", "90" (seconds) -> nanoseconds. */
int text_duration(const char *, uint64_t *ns);
/* "64KiB", "16kB", "8k", "4096" -> bytes. */
int text_size(const char *, uint64_t *bytes);
/* "99", "99Hz" -> samples per second, 0.1 to 20000. */
int text_rate(const char *, double *hz);
#endif
