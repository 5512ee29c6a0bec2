/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/code.h - machine code of a file in inspect(): the bytes of a function, and the part of it
 * that a compiler has moved away. Optional, as <fusee/helpers.h>: all of it is compiled into the
 * plugin. x86-64.
 */
#ifndef FUSEE_CODE_H
#define FUSEE_CODE_H

#include <stdlib.h>

#include <fusee/helpers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes of a function; at is malloc'ed. */
struct fusee_code {
	unsigned char *at;
	uint32_t n;
	uint64_t vaddr; /* of the first byte */
};

#define FUSEE_CODE_MOST (1u << 20) /* bytes of a function that is read */

/* Reads [r.lo, r.hi). 0, -EBADMSG (empty, or more than FUSEE_CODE_MOST), -ENOMEM, or what
 * host->file_read() returned; but for 0, code->at is NULL. */
static inline int fusee_read_code(const struct fusee_unwinder_host *host, uint64_t file,
				  struct fusee_range r, struct fusee_code *code)
{
	int err;

	code->at = NULL;
	if (r.hi <= r.lo || r.hi - r.lo > FUSEE_CODE_MOST)
		return -EBADMSG;
	code->vaddr = r.lo;
	code->n = (uint32_t)(r.hi - r.lo);
	code->at = (unsigned char *)malloc(code->n);
	if (!code->at)
		return -ENOMEM;
	err = host->file_read(file, r.lo, code->at, code->n);
	if (err) {
		free(code->at);
		code->at = NULL;
	}
	return err;
}

#define FUSEE_COLD_CANDIDATES 16u
/* As many jumps into a function, after its first byte, make it a part of another. */
#define FUSEE_COLD_JUMPS 8u

struct fusee_cold_candidate {
	struct fusee_range at;
	uint32_t jumps;
};

/* Counts a jump out of the function. */
static inline void fusee_count_jump(const struct fusee_unwinder_host *host, uint64_t file,
				    struct fusee_cold_candidate *c, uint64_t to)
{
	struct fusee_range at;

	for (uint32_t i = 0; i < FUSEE_COLD_CANDIDATES && c[i].jumps; i++)
		if (to >= c[i].at.lo && to < c[i].at.hi) {
			c[i].jumps++;
			return;
		}
	if (host->file_function(file, to, &at) || at.lo == to || to >= at.hi)
		return;
	for (uint32_t i = 0; i < FUSEE_COLD_CANDIDATES; i++)
		if (!c[i].jumps) {
			c[i].at = at;
			c[i].jumps = 1;
			return;
		}
}

/*
 * Compilers move rarely used code to a function of its own, which has no name in stripped files:
 * the function into whose middle most jumps of this function go. 0 with its range; -ENOENT: there
 * are less than FUSEE_COLD_JUMPS such jumps.
 */
static inline int fusee_find_cold(const struct fusee_unwinder_host *host, uint64_t file,
				  const struct fusee_code *code, struct fusee_range *cold)
{
	struct fusee_cold_candidate c[FUSEE_COLD_CANDIDATES];
	uint32_t best = 0;

	memset(c, 0, sizeof(c));
	for (uint32_t i = 0; i + 6 <= code->n; i++) {
		const unsigned char *p = code->at + i;
		uint32_t n = p[0] == 0xe9 ? 1 : p[0] == 0x0f && (p[1] & 0xf0) == 0x80 ? 2 : 0;
		int32_t distance;
		uint64_t to;

		memcpy(&distance, p + n, sizeof(distance));
		to = code->vaddr + i + n + 4 + (uint64_t)(int64_t)distance;
		if (n && to - code->vaddr >= code->n)
			fusee_count_jump(host, file, c, to);
	}
	for (uint32_t i = 1; i < FUSEE_COLD_CANDIDATES; i++)
		if (c[i].jumps > c[best].jumps)
			best = i;
	if (c[best].jumps < FUSEE_COLD_JUMPS)
		return -ENOENT;
	*cold = c[best].at;
	return 0;
}

#ifdef __cplusplus
}
#endif
#endif
