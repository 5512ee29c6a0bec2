/* SPDX-License-Identifier: Apache-2.0 */
#include "process/call.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/pread.h"

#define MAX_SEGMENTS 64u
#define MAX_CODE 65536u /* bytes of a function that are searched */
#define PIECE 4096u
#define JUMP 6u /* bytes of the longest jump to another function */
#define INDEXES 64u
#define ANSWERS 1024u

/* .eh_frame_hdr: the starts of functions, sorted. */
struct index {
	uint32_t file; /* 0: none */
	uint32_t n;    /* 0: the file has none */
	uint64_t at;   /* of its entries in the file */
	uint64_t base; /* to which they are relative */
};

struct answer {
	uint32_t file; /* 0: none */
	bool may;
	uint64_t ret, callee;
};

struct call_answers {
	struct index indexes[INDEXES];
	struct answer answers[ANSWERS];
};

/* ELF virtual addresses. */
struct function {
	uint64_t lo, hi;
};

/* Is this, of so many bytes, a call through a register or memory? */
static bool is_indirect(const unsigned char *b, uint32_t len)
{
	uint32_t mode = b[1] >> 6, base = b[1] & 7, n = 2;

	if (b[0] != 0xff || (b[1] & 0x38) != 0x10)
		return false;
	if (base == 4 && mode != 3) {
		n++;
		base = len > 2 ? b[2] & 7 : 0;
	}
	if (mode == 2 || (!mode && base == 5))
		n += 4;
	return n + (mode == 1) == len;
}

static bool ends_in_indirect(const unsigned char code[CALL_BYTES])
{
	for (uint32_t len = 2; len <= CALL_BYTES; len++)
		if (is_indirect(code + CALL_BYTES - len, len))
			return true;
	return false;
}

bool call_ends(const unsigned char code[CALL_BYTES])
{
	return code[CALL_BYTES - 5] == 0xe8 || ends_in_indirect(code);
}

/* ---- functions ---- */

/* Its table has pairs of 4 bytes, relative to itself, as all linkers write it. */
static void read_index(int fd, struct index *x)
{
	Elf64_Phdr segments[MAX_SEGMENTS];
	unsigned char head[12];
	Elf64_Ehdr e;
	uint32_t n;

	if (pread_all(fd, &e, sizeof(e), 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(*segments) ||
	    e.e_phnum > MAX_SEGMENTS ||
	    pread_all(fd, segments, e.e_phnum * sizeof(*segments), e.e_phoff))
		return;
	for (uint32_t i = 0; i < e.e_phnum; i++) {
		if (segments[i].p_type != PT_GNU_EH_FRAME ||
		    pread_all(fd, head, sizeof(head), segments[i].p_offset) ||
		    memcmp(head, "\x01\x1b\x03\x3b", 4))
			continue;
		memcpy(&n, head + 8, 4);
		x->at = segments[i].p_offset + sizeof(head);
		x->base = segments[i].p_vaddr;
		x->n = n <= segments[i].p_filesz / 8 ? n : 0;
	}
}

static bool read_start(int fd, const struct index *x, uint32_t i, uint64_t *start)
{
	int32_t distance;

	if (pread_all(fd, &distance, sizeof(distance), x->at + 8ull * i))
		return false;
	*start = x->base + (uint64_t)(int64_t)distance;
	return true;
}

/* The function that has this address. false: not known. */
static bool find_function(struct call_answers *a, const struct call_file *c, uint64_t vaddr,
			  struct function *f)
{
	struct index *x = &a->indexes[c->file % INDEXES];
	uint32_t lo = 0, hi;
	uint64_t start;

	if (x->file != c->file) {
		*x = (struct index){.file = c->file};
		read_index(c->fd, x);
	}
	for (hi = x->n; lo < hi;) {
		uint32_t middle = lo + (hi - lo) / 2;

		if (!read_start(c->fd, x, middle, &start))
			return false;
		if (start <= vaddr)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo && lo < x->n && read_start(c->fd, x, lo - 1, &f->lo) &&
	       read_start(c->fd, x, lo, &f->hi);
}

/* ---- jumps ---- */

static uint64_t target(const unsigned char *rel, uint64_t end)
{
	int32_t distance;

	memcpy(&distance, rel, sizeof(distance));
	return end + (uint64_t)(int64_t)distance;
}

/* A jump through a register or memory: jmp *%reg; *(..); *(%rip). */
static bool is_indirect_jump(const unsigned char *b)
{
	return b[0] == 0xff && (b[1] & 0x38) == 0x20;
}

static bool is_in(const struct function *f, uint64_t vaddr)
{
	return vaddr >= f->lo && vaddr < f->hi;
}

/* May an instruction here, which would begin at this address, leave the function for `to`? NULL:
 * for code that is in no file, or another function, which may jump there. */
static bool may_jump(const unsigned char *b, uint64_t vaddr, const struct function *f,
		     const struct function *to)
{
	uint64_t at = target(b + 1, vaddr + 5);

	if (!to)
		return is_indirect_jump(b) || (b[0] == 0xe9 && !is_in(f, at));
	return (b[0] == 0xe9 && is_in(to, at)) ||
	       (b[0] == 0x0f && (b[1] & 0xf0) == 0x80 && is_in(to, target(b + 2, vaddr + 6)));
}

/* At any of its bytes, since where instructions begin is not known. */
static bool has_jump(const struct call_file *c, const struct function *f, const struct function *to)
{
	unsigned char code[PIECE + JUMP] = {0};

	if (f->hi - f->lo > MAX_CODE)
		return true;
	for (uint64_t at = f->lo; at < f->hi; at += PIECE) {
		uint64_t rest = f->hi - at;
		uint32_t len = (uint32_t)(rest < PIECE ? rest : PIECE);
		uint32_t bytes = (uint32_t)(rest < sizeof(code) ? rest : sizeof(code));

		memset(code + bytes, 0, sizeof(code) - bytes);
		if (c->read(c->arg, code, bytes, at + c->bias))
			return true;
		for (uint32_t i = 0; i < len; i++)
			if (may_jump(code + i, at + i, f, to))
				return true;
	}
	return false;
}

/* Is this an entry of a PLT? */
static bool is_plt(const struct call_file *c, uint64_t addr)
{
	unsigned char b[7];
	uint32_t i = 0;

	if (c->read(c->arg, b, sizeof(b), addr))
		return true;
	if (!memcmp(b, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		i = 4;
	i += b[i] == 0xf2; /* bnd */
	return b[i] == 0xff && b[i + 1] == 0x25;
}

/* ---- calls ---- */

static bool may_lead(struct call_answers *a, const struct call_file *c, uint64_t ret,
		     uint64_t callee)
{
	unsigned char code[CALL_BYTES];
	struct function f, to;
	uint64_t called;

	if (c->read(c->arg, code, CALL_BYTES, ret - CALL_BYTES) || ends_in_indirect(code))
		return true;
	called = target(code + CALL_BYTES - 4, ret);
	if (is_plt(c, called) || !find_function(a, c, called - c->bias, &f))
		return true;
	if (!callee)
		return has_jump(c, &f, NULL);
	return is_in(&f, callee - c->bias) || !find_function(a, c, callee - c->bias, &to) ||
	       has_jump(c, &f, &to);
}

bool call_may_lead(struct call_answers **answers, const struct call_file *c, uint64_t ret,
		   uint64_t callee, bool *searched)
{
	struct answer *a, key = {.file = c->file,
				 .ret = ret - c->bias,
				 .callee = callee ? callee - c->bias : UINT64_MAX};

	*searched = false;
	if (!*answers)
		*answers = calloc(1, sizeof(**answers));
	if (!*answers)
		return true;
	a = &(*answers)->answers[(key.ret * 31 + key.callee * 7 + key.file) % ANSWERS];
	if (a->file != key.file || a->ret != key.ret || a->callee != key.callee) {
		*searched = true;
		key.may = may_lead(*answers, c, ret, callee);
		*a = key;
	}
	return a->may;
}
