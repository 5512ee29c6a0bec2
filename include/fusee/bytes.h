/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/bytes.h - arrays and bytes that grow, for the sources of plugins. Optional: nothing here is
 * part of the ABI, everything is compiled into the plugin.
 *
 * The header needs libc, and compiles as C11 and as C++17 with the extensions of gcc and clang. All
 * functions may be called from any thread, one at a time for the same bytes.
 */
#ifndef FUSEE_BYTES_H
#define FUSEE_BYTES_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes room for `need` elements of `size` bytes, by doubling. array: the address of a pointer that
 * realloc() takes; *cap: the elements that it has room for. false: no memory, and all is as it was.
 */
static inline bool fusee_grow(void *array, uint64_t *cap, uint64_t need, size_t size)
{
	uint64_t n = *cap ? *cap : size < 16 ? 16 : 4; /* many arrays have a few large elements */
	void *at;

	if (need <= *cap)
		return true;
	while (n < need && n <= UINT64_MAX / 2)
		n *= 2;
	if (n < need || n > SIZE_MAX / 2 / size)
		return false;
	memcpy(&at, array, sizeof(at));
	at = realloc(at, (size_t)n * size);
	if (!at)
		return false;
	memcpy(array, &at, sizeof(at));
	*cap = n;
	return true;
}

/* Zeroed is empty. After an error nothing is added, so that a caller checks once. */
struct fusee_bytes {
	char *p; /* owned */
	uint64_t len, cap;
	uint64_t most; /* bytes that it may have; 0: no limit */
	int error;     /* -ENOMEM; -E2BIG: it would have more than `most`; 0: none */
};

static inline void fusee_bytes_fini(struct fusee_bytes *b)
{
	free(b->p);
	memset(b, 0, sizeof(*b));
}

/* Empty again; the memory is kept. */
static inline void fusee_bytes_reset(struct fusee_bytes *b)
{
	b->len = 0;
	b->error = 0;
}

static inline struct fusee_str fusee_bytes_str(const struct fusee_bytes *b)
{
	struct fusee_str s = {b->p ? b->p : "", b->len};

	return s;
}

static inline bool fusee_bytes_grow(struct fusee_bytes *b, uint64_t n)
{
	if (b->error)
		return false;
	if (b->most && (n > b->most || b->len > b->most - n))
		b->error = -E2BIG;
	else if (n > SIZE_MAX / 4 || !fusee_grow(&b->p, &b->cap, b->len + n, 1))
		b->error = -ENOMEM;
	return !b->error;
}

/* Room for n more bytes. false: `error` is set. */
static inline bool fusee_bytes_reserve(struct fusee_bytes *b, uint64_t n)
{
	return (!b->error && !b->most && n <= b->cap - b->len) || fusee_bytes_grow(b, n);
}

static inline void fusee_bytes_add(struct fusee_bytes *b, const void *bytes, uint64_t n)
{
	if (!n || !fusee_bytes_reserve(b, n))
		return;
	memcpy(b->p + b->len, bytes, (size_t)n);
	b->len += n;
}

static inline void fusee_bytes_byte(struct fusee_bytes *b, uint8_t byte)
{
	fusee_bytes_add(b, &byte, 1);
}

/* A number in 7 bits of each byte, the lowest first. */
static inline void fusee_bytes_varint(struct fusee_bytes *b, uint64_t v)
{
	uint8_t bytes[10];
	uint32_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	fusee_bytes_add(b, bytes, n);
}

/* The lowest `size` bytes of v, the lowest first. size: at most 8. */
static inline void fusee_bytes_number(struct fusee_bytes *b, uint64_t v, uint32_t size)
{
	uint8_t bytes[8];

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	fusee_bytes_add(b, bytes, size);
}

#ifdef __cplusplus
}
#endif
#endif
