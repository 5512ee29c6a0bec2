/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* A piece of this size has a block to itself, which grows without a copy. Keys of the deepest
 * stacks are smaller: a process may have only some 65,000 mappings. */
#define LARGE ((size_t)20 << 10)
/* Of other blocks. Pages that are not written yet take no memory. */
#define BLOCK ((size_t)256 << 10)
#define PAGE ((size_t)4096)
#define ALIGN ((size_t)8)

/* A mapping. The pieces follow. */
struct arena_block {
	struct arena_block *next, *prev;
	size_t size;
	size_t unused; /* pieces are aligned */
};

_Static_assert(sizeof(struct arena_block) % ALIGN == 0, "pieces are aligned");

static _Atomic size_t all_bytes;

static size_t rounded(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static size_t block_size(size_t piece)
{
	return rounded(piece + sizeof(struct arena_block), PAGE);
}

static void count(struct arena *a, size_t more, size_t less)
{
	a->bytes += more - less;
	all_bytes += more - less;
}

/* Adds the block to the list, at its address, which may be new. */
static void link_block(struct arena *a, struct arena_block *b)
{
	if (b->next)
		b->next->prev = b;
	if (b->prev)
		b->prev->next = b;
	else
		a->blocks = b;
}

static struct arena_block *map(struct arena *a, size_t size)
{
	struct arena_block *b = mmap(NULL, size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (b == MAP_FAILED)
		return NULL;
	*b = (struct arena_block){.next = a->blocks, .size = size};
	link_block(a, b);
	count(a, size, 0);
	return b;
}

void arena_fini(struct arena *a)
{
	for (struct arena_block *b = a->blocks, *next; b; b = next) {
		next = b->next;
		munmap(b, b->size);
	}
	count(a, 0, a->bytes);
	*a = (struct arena){0};
}

void *arena_add(struct arena *a, size_t size)
{
	size_t need = rounded(size ? size : 1, ALIGN);
	struct arena_block *b;

	if (need < size || need > SIZE_MAX / 2)
		return NULL;
	if (need >= LARGE) {
		b = map(a, block_size(need));
		return b ? b + 1 : NULL;
	}
	if ((size_t)(a->end - a->at) < need) {
		b = map(a, BLOCK);
		if (!b)
			return NULL;
		a->at = (char *)(b + 1);
		a->end = (char *)b + BLOCK;
	}
	a->at += need;
	return a->at - need;
}

static void *grow_large(struct arena *a, void *p, size_t size)
{
	struct arena_block *b = (struct arena_block *)p - 1;
	size_t before = b->size, after = block_size(size);

	if (after <= before)
		return p;
	b = mremap(b, before, after, MREMAP_MAYMOVE);
	if (b == MAP_FAILED)
		return NULL;
	b->size = after;
	link_block(a, b);
	count(a, after, before);
	return b + 1;
}

void *arena_grow(struct arena *a, void *p, size_t old, size_t size)
{
	size_t had = rounded(old, ALIGN), need = rounded(size, ALIGN);
	void *to;

	if (need < size || need > SIZE_MAX / 2)
		return NULL;
	if (!p)
		return arena_add(a, size);
	if (need <= had)
		return p;
	if (had >= LARGE)
		return grow_large(a, p, need);
	if ((char *)p + had == a->at && need < LARGE && need - had <= (size_t)(a->end - a->at)) {
		a->at += need - had;
		return p;
	}
	to = arena_add(a, size);
	if (to)
		memcpy(to, p, old);
	return to;
}

void *arena_room(struct arena *a, void *array, size_t n, size_t *cap, size_t size)
{
	size_t larger = *cap ? *cap * 2 : 64;
	void *p;

	if (n < *cap)
		return array;
	p = arena_grow(a, array, *cap * size, larger * size);
	if (p)
		*cap = larger;
	return p;
}

void arena_drop(struct arena *a, void *p, size_t size)
{
	struct arena_block *b;

	if (!p || rounded(size, ALIGN) < LARGE)
		return;
	b = (struct arena_block *)p - 1;
	if (b->next)
		b->next->prev = b->prev;
	if (b->prev)
		b->prev->next = b->next;
	else
		a->blocks = b->next;
	count(a, 0, b->size);
	munmap(b, b->size);
}

size_t arena_all_bytes(void)
{
	return all_bytes;
}
