/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/code.h - machine code of a file in inspect(): the bytes of a function, the part of it that
 * a compiler has moved away, and the offsets that it uses. Optional, as <fusee/helpers.h>: all of
 * it is compiled into the plugin. x86-64.
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

/* The number in the 4 bytes at p, and the same with its sign. */
static inline uint32_t fusee_code_u32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline int64_t fusee_code_s32(const unsigned char *p)
{
	return (int32_t)fusee_code_u32(p);
}

/* The address that an instruction refers to by its last 4 bytes, which end before byte `end`. */
static inline uint64_t fusee_code_target(const struct fusee_code *c, uint32_t end)
{
	return c->vaddr + end + (uint64_t)fusee_code_s32(c->at + end - 4);
}

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
		uint64_t to = fusee_code_target(code, i + n + 4);

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

/* ---- offsets that a function uses ---- */

enum fusee_use {
	FUSEE_USE_VALUE,   /* loads or compares what is there: mov, cmp, movslq */
	FUSEE_USE_ADDRESS, /* computes the address: lea, or adds the offset to a register */
};

/* Does the operand whose ModRM byte is at i lie at this offset from a register? */
static inline int fusee_has_offset(const struct fusee_code *c, uint32_t i, uint32_t offset)
{
	uint32_t mode = c->at[i] >> 6, base = c->at[i] & 7, at = i + 1 + (base == 4);
	uint32_t wide;

	if (mode == 0)
		return !offset && base != 5;
	if (mode == 1)
		return offset < 128 && at < c->n && c->at[at] == offset;
	if (mode == 3 || c->n < 4 || at > c->n - 4)
		return 0;
	memcpy(&wide, c->at + at, sizeof(wide));
	return wide == offset;
}

/* Does an instruction use the offset? vaddr: or, for a value, this address; 0: none. */
static inline int fusee_code_uses(const struct fusee_code *c, enum fusee_use how, uint32_t offset,
				  uint64_t vaddr)
{
	for (uint32_t i = 0; i + 2 <= c->n; i++) {
		unsigned char op = c->at[i], mod = c->at[i + 1];

		if (how == FUSEE_USE_ADDRESS) {
			if ((op == 0x8d && fusee_has_offset(c, i + 1, offset)) ||
			    (op == 0x83 && (mod & 0xf8) == 0xc0 && i + 3 <= c->n &&
			     c->at[i + 2] == offset))
				return 1;
			continue;
		}
		if (op != 0x8b && op != 0x39 && op != 0x3b && op != 0x63 &&
		    (op != 0x83 || (mod >> 3 & 7) != 7))
			continue;
		if (fusee_has_offset(c, i + 1, offset))
			return 1;
		if (vaddr && (mod & 0xc7) == 5 && i + 6 <= c->n &&
		    fusee_code_target(c, i + 6) == vaddr)
			return 1;
	}
	return 0;
}

#define FUSEE_ACCESSOR_MOST 4096u /* bytes of a function that is looked at: these are short */

static inline int fusee_read_accessor(const struct fusee_unwinder_host *host, uint64_t file,
				      struct fusee_range at, struct fusee_code *code)
{
	return at.hi - at.lo > FUSEE_ACCESSOR_MOST ? -EFBIG : fusee_read_code(host, file, at, code);
}

/*
 * Does a function of this name, or a function that it calls directly, use the offset as above? What
 * exported functions read says how a release lays out its structs. 1, 0, or -errno: there is no
 * such function, or it cannot be read.
 */
static inline int fusee_function_uses(const struct fusee_unwinder_host *host, uint64_t file,
				      const char *function, enum fusee_use how, uint32_t offset,
				      uint64_t vaddr)
{
	struct fusee_range at;
	struct fusee_code code, callee;
	int err, uses;

	err = host->file_symbol(file, function, &at);
	err = err ? err : fusee_read_accessor(host, file, at, &code);
	if (err)
		return err;
	uses = fusee_code_uses(&code, how, offset, vaddr);
	for (uint32_t i = 0; i + 5 <= code.n && !uses; i++) {
		if ((code.at[i] & 0xfe) != 0xe8) /* call, jmp */
			continue;
		if (host->file_function(file, fusee_code_target(&code, i + 5), &at) ||
		    fusee_read_accessor(host, file, at, &callee))
			continue;
		uses = fusee_code_uses(&callee, how, offset, vaddr);
		free(callee.at);
	}
	free(code.at);
	return uses;
}

/* What contradicts what is known of a release's structs. */
struct fusee_doubt {
	const char *function; /* NULL: nothing does */
	uint32_t offset;      /* that it should use */
	int missing;          /* 1: the file has no such function */
};

#ifdef __cplusplus
}
#endif
#endif
