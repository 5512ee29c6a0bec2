// SPDX-License-Identifier: Apache-2.0
/* Writes, checks and opens the block of an inspection. */
#include "inspection/internal/block.h"

#include <errno.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/utf8.h"
#include "symbols/compiler.h"

struct held {
	struct inspection inspection; /* first, as pointers to it are cast */
	void *map;
	uint64_t len;
	struct inspection_slab slabs[];
};

#define KNOWN_FLAGS (INSPECTION_SOURCES | INSPECTION_STARTS | INSPECTION_BRIEF)

/* ---- writing ---- */

static void align(struct buf *b)
{
	static const char zero[8];

	buf_add(b, zero, -b->len & 7);
}

static uint64_t add_text(struct buf *b, const char *text)
{
	uint64_t at = b->len;

	buf_add(b, text, strlen(text) + 1);
	return at;
}

static void add_slabs(struct buf *b, const struct inspection *from, struct inspection_block *head)
{
	struct inspection_block_slab s[INSPECTION_MAX_SLABS] = {0};

	for (uint32_t i = 0; i < from->nslabs; i++) {
		memcpy(s[i].unwinder, from->slabs[i].unwinder, sizeof(s[i].unwinder) - 1);
		s[i].version = from->slabs[i].version;
		s[i].n = from->slabs[i].n;
		s[i].words_at = b->len;
		buf_add(b, from->slabs[i].words, from->slabs[i].n * 4);
		align(b);
		s[i].nclaims = from->slabs[i].nclaims;
		s[i].claims_at = b->len;
		buf_add(b, from->slabs[i].claims,
			from->slabs[i].nclaims * sizeof(*from->slabs[i].claims));
	}
	head->nslabs = from->nslabs;
	head->slabs_at = b->len;
	buf_add(b, s, from->nslabs * sizeof(*s));
}

int inspection_write(struct buf *b, const struct inspection *from)
{
	struct inspection_block head = {
		.magic = INSPECTION_MAGIC,
		.version = INSPECTION_VERSION,
		.machine = from->machine,
		.type = from->type,
		.flags = from->flags & KNOWN_FLAGS,
		.entry = from->entry,
		.build_id_len = from->build_id_len,
		.debuglink_crc = from->debuglink_crc,
		.nsegments = from->nsegments,
	};

	if (from->nslabs > INSPECTION_MAX_SLABS)
		return -EFBIG;
	memcpy(head.key, from->key, sizeof(head.key));
	memcpy(head.build_id, from->build_id, sizeof(head.build_id));
	buf_grow(b, sizeof(head));
	head.segments_at = b->len;
	buf_add(b, from->segments, from->nsegments * sizeof(*from->segments));
	add_slabs(b, from, &head);
	head.debuglink_at = add_text(b, from->debuglink);
	head.notes_at = add_text(b, from->notes);
	head.compiler_at = add_text(b, from->compiler);
	align(b);
	if (b->error)
		return b->error;
	if (b->len > INSPECTION_MAX_BYTES)
		return -EFBIG;
	head.bytes = b->len;
	memcpy(b->p, &head, sizeof(head));
	return 0;
}

/* ---- reading ---- */

/* Whether n elements of `each` bytes at `at`, aligned to align_to, lie within len bytes. */
static bool inside(uint64_t len, uint64_t at, uint64_t n, uint64_t each, uint64_t align_to)
{
	uint64_t bytes, end;

	return !(at % align_to) && !__builtin_mul_overflow(n, each, &bytes) &&
	       !__builtin_add_overflow(at, bytes, &end) && end <= len;
}

/* Whether a printable text of one line, or of several, is at `at`. */
static bool is_text(const char *block, uint64_t len, uint64_t at, bool lines)
{
	const char *p, *end, *line;

	if (at >= len)
		return false;
	p = block + at;
	end = memchr(p, 0, len - at);
	if (!end)
		return false;
	for (; lines && (line = memchr(p, '\n', (size_t)(end - p))); p = line + 1)
		if (!utf8_printable(p, (size_t)(line - p)))
			return false;
	return utf8_printable(p, (size_t)(end - p));
}

bool inspection_is_file_name(const char *name)
{
	return utf8_printable(name, strlen(name)) && !strchr(name, '/') && strcmp(name, ".") &&
	       strcmp(name, "..") && strlen(name) < 256;
}

static bool segments_ok(const struct fusee_segment *s, uint32_t n)
{
	uint64_t end;

	for (uint32_t i = 0; i < n; i++)
		if (s[i].filesz > s[i].memsz ||
		    __builtin_add_overflow(s[i].vaddr, s[i].memsz, &end) ||
		    __builtin_add_overflow(s[i].offset, s[i].filesz, &end) ||
		    (i && s[i].vaddr < s[i - 1].vaddr))
			return false;
	return true;
}

static bool claims_ok(const struct inspection_claim *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (c[i].lo >= c[i].hi || (i && c[i].lo < c[i - 1].hi))
			return false;
	return true;
}

static bool slabs_ok(const char *p, uint64_t len, const struct inspection_block_slab *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!memchr(s[i].unwinder, 0, sizeof(s[i].unwinder)) || !*s[i].unwinder ||
		    !is_text(s[i].unwinder, sizeof(s[i].unwinder), 0, false) ||
		    !inside(len, s[i].words_at, s[i].n, 4, 4) ||
		    s[i].nclaims > INSPECTION_MAX_CLAIMS ||
		    !inside(len, s[i].claims_at, s[i].nclaims, sizeof(struct inspection_claim),
			    8) ||
		    !claims_ok((const void *)(p + s[i].claims_at), s[i].nclaims))
			return false;
	}
	return true;
}

static bool block_ok(const char *p, uint64_t len, const uint8_t key[32])
{
	const struct inspection_block *b = (const void *)p;

	if (len < sizeof(*b) || len > INSPECTION_MAX_BYTES || b->magic != INSPECTION_MAGIC ||
	    b->version != INSPECTION_VERSION || b->bytes != len ||
	    b->flags & ~(uint32_t)KNOWN_FLAGS || b->build_id_len > sizeof(b->build_id) ||
	    b->nslabs > INSPECTION_MAX_SLABS)
		return false;
	if (key && memcmp(b->key, key, sizeof(b->key)))
		return false;
	if (!inside(len, b->segments_at, b->nsegments, sizeof(struct fusee_segment), 8) ||
	    !inside(len, b->slabs_at, b->nslabs, sizeof(struct inspection_block_slab), 8) ||
	    !is_text(p, len, b->debuglink_at, false) ||
	    !inspection_is_file_name(p + b->debuglink_at) || !is_text(p, len, b->notes_at, true) ||
	    !is_text(p, len, b->compiler_at, false) || strlen(p + b->compiler_at) > COMPILER_MAX)
		return false;
	return segments_ok((const void *)(p + b->segments_at), b->nsegments) &&
	       slabs_ok(p, len, (const void *)(p + b->slabs_at), b->nslabs);
}

static void fill(struct held *h, const char *p)
{
	const struct inspection_block *b = (const void *)p;
	const struct inspection_block_slab *s = (const void *)(p + b->slabs_at);

	h->inspection = (struct inspection){
		.refs = 1,
		.machine = b->machine,
		.type = b->type,
		.flags = b->flags,
		.entry = b->entry,
		.build_id_len = b->build_id_len,
		.nsegments = b->nsegments,
		.nslabs = b->nslabs,
		.segments = (const void *)(p + b->segments_at),
		.slabs = h->slabs,
		.debuglink = p + b->debuglink_at,
		.notes = p + b->notes_at,
		.compiler = p + b->compiler_at,
		.debuglink_crc = b->debuglink_crc,
		.bytes = h->len,
	};
	memcpy(h->inspection.key, b->key, sizeof(b->key));
	memcpy(h->inspection.build_id, b->build_id, sizeof(b->build_id));
	for (uint32_t i = 0; i < b->nslabs; i++) {
		memcpy(h->slabs[i].unwinder, s[i].unwinder, sizeof(s[i].unwinder));
		h->slabs[i].version = s[i].version;
		h->slabs[i].words = (const void *)(p + s[i].words_at);
		h->slabs[i].n = s[i].n;
		h->slabs[i].claims = (const void *)(p + s[i].claims_at);
		h->slabs[i].nclaims = s[i].nclaims;
	}
}

int inspection_open(struct inspection **ret, void *map, uint64_t len, const uint8_t key[32])
{
	const struct inspection_block *b = map;
	struct held *h = NULL;
	int err = -EBADMSG;

	if (!block_ok(map, len, key))
		goto out;
	err = -ENOMEM;
	h = malloc(sizeof(*h) + b->nslabs * sizeof(h->slabs[0]));
	if (!h)
		goto out;
	h->map = map;
	h->len = len;
	fill(h, map);
	*ret = &h->inspection;
	return 0;
out:
	munmap(map, len);
	return err;
}

const void *inspection_bytes(const struct inspection *i, uint64_t *len)
{
	const struct held *h = (const void *)i;

	*len = h->len;
	return h->map;
}

void inspection_set_stored(struct inspection *i, const uint8_t name[32])
{
	i->is_stored = true;
	memcpy(i->stored, name, sizeof(i->stored));
}

void inspection_ref(struct inspection *i)
{
	uint32_t before = __atomic_fetch_add(&i->refs, 1, __ATOMIC_RELAXED);

	fusee_assert(before && before < UINT32_MAX);
}

void inspection_unref(struct inspection *i)
{
	struct held *h = (void *)i;
	uint32_t before;

	if (!i)
		return;
	before = __atomic_fetch_sub(&i->refs, 1, __ATOMIC_ACQ_REL);
	fusee_assert(before);
	if (before > 1)
		return;
	munmap(h->map, h->len);
	free(h);
}

const struct inspection_slab *inspection_slab(const struct inspection *i, const char *unwinder)
{
	for (uint32_t s = 0; s < i->nslabs; s++)
		if (!strcmp(i->slabs[s].unwinder, unwinder))
			return &i->slabs[s];
	return NULL;
}

/* The segment's bytes are extended to multiples of `page`, as a mapping is. */
static bool vaddr_in(const struct fusee_segment *g, uint64_t offset, uint64_t page, uint64_t *vaddr)
{
	uint64_t lo = g->offset & -page, hi = g->offset + g->filesz;

	if (!(g->flags & PF_X) || !g->filesz || hi > UINT64_MAX - page)
		return false;
	hi = (hi + page - 1) & -page;
	if (offset < lo || offset >= hi)
		return false;
	*vaddr = g->vaddr + (offset - g->offset); /* may be below g->vaddr; correct modulo 2^64 */
	return true;
}

bool inspection_vaddr(const struct inspection *i, uint64_t offset, uint64_t *vaddr)
{
	for (uint64_t page = 1; page; page = page == 1 ? (uint64_t)getpagesize() : 0)
		for (uint32_t s = 0; s < i->nsegments; s++)
			if (vaddr_in(&i->segments[s], offset, page, vaddr))
				return true;
	return false;
}
