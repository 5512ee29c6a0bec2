/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte buffer. {0} is an empty one. After a failed append `error` is -ENOMEM and stays:
 * append freely, look once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	char *p; /* owned; not terminated */
	size_t len, cap;
	int error;
};

void buf_fini(struct buf *);              /* also makes it {0} */
void buf_reset(struct buf *);             /* len 0, memory kept */
void *buf_grow(struct buf *, size_t len); /* appends len bytes, not initialised; NULL: no memory */
int buf_add(struct buf *, const void *, size_t len);
int buf_str(struct buf *, const char *); /* without its NUL */
int buf_printf(struct buf *, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_write(const struct buf *, int fd);         /* all of it; 0 or -errno */
int buf_read_fd(struct buf *, int fd, size_t max); /* appends until the end; -EFBIG beyond max */
#endif
