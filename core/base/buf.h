/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte buffer. {0} is an empty buffer. A failed append sets `error` and leaves the
 * content as it was; every later append fails too. A caller may therefore append freely and check
 * `error` once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *p;         /* owned; not terminated by a NUL */
	size_t len, cap; /* bytes */
	int error;       /* of the first append that failed; 0: none */
};

/* The functions that return int return 0 or -errno. */

void buf_fini(struct buf *);  /* frees the memory; the buffer is {0} afterwards */
void buf_reset(struct buf *); /* sets len and error to 0 and keeps the memory */
/* Appends len uninitialised bytes and returns their address. NULL: no memory. */
void *buf_grow(struct buf *, size_t len);
int buf_add(struct buf *, const void *, size_t len);
int buf_str(struct buf *, const char *); /* without its NUL */
int buf_printf(struct buf *, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *, const char *format, va_list) __attribute__((format(printf, 2, 0)));
/* Writes the complete content to fd. */
int buf_write(const struct buf *, int fd);
/* Appends the bytes of fd, up to its end. -EFBIG: more than max bytes. */
int buf_read_fd(struct buf *, int fd, size_t max);
#endif
