/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void buf_fini(struct buf *b)
{
	free(b->p);
	*b = (struct buf){0};
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->error = 0;
}

static int reserve(struct buf *b, size_t len)
{
	size_t need, cap = b->cap ? b->cap : 256;
	char *p;

	if (b->error)
		return b->error;
	if (__builtin_add_overflow(b->len, len, &need))
		return b->error = -ENOMEM;
	if (b->p && need <= b->cap)
		return 0;
	while (cap < need)
		if (__builtin_mul_overflow(cap, 2, &cap))
			return b->error = -ENOMEM;
	p = realloc(b->p, cap);
	if (!p)
		return b->error = -ENOMEM;
	b->p = p;
	b->cap = cap;
	return 0;
}

void *buf_grow(struct buf *b, size_t len)
{
	if (reserve(b, len))
		return NULL;
	b->len += len;
	return b->p + b->len - len;
}

int buf_add(struct buf *b, const void *p, size_t len)
{
	void *to = buf_grow(b, len);

	if (to && len)
		memcpy(to, p, len);
	return b->error;
}

int buf_str(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_vprintf(struct buf *b, const char *format, va_list args)
{
	va_list ap;
	int n;

	va_copy(ap, args);
	n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	if (n < 0)
		return b->error = -EINVAL;
	if (reserve(b, (size_t)n + 1))
		return b->error;
	vsnprintf(b->p + b->len, (size_t)n + 1, format, args);
	b->len += (size_t)n;
	return 0;
}

int buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = buf_vprintf(b, format, args);
	va_end(args);
	return r;
}

int buf_write(const struct buf *b, int fd)
{
	for (size_t done = 0; done < b->len;) {
		ssize_t n = write(fd, b->p + done, b->len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			done += (size_t)n;
	}
	return 0;
}

int buf_read_fd(struct buf *b, int fd, size_t max)
{
	for (;;) {
		ssize_t n;

		if (b->len > max)
			return -EFBIG;
		if (reserve(b, 65536))
			return b->error;
		n = read(fd, b->p + b->len, 65536);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		if (n > 0)
			b->len += (size_t)n;
	}
}
