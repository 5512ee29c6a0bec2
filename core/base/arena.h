/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed all at once: of a window, or of a profile. It lies in mappings of its own,
 * so it leaves no holes between blocks that stay, and its pages return to the system at once. {0}
 * is empty. For one thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks; /* a list, in no order */
	char *at, *end;             /* the free bytes of the block that is filled */
	size_t bytes;               /* of all blocks */
};

void arena_fini(struct arena *);
/* Zeroed bytes, aligned to 8. NULL: no memory. */
void *arena_add(struct arena *, size_t size);
/* Grows a piece of `old` bytes, which may move; further bytes are zero. p of NULL: a new piece.
 * NULL: no memory; the piece is unchanged. */
void *arena_grow(struct arena *, void *p, size_t old, size_t size);
/* array_room() of an array in the arena. */
void *arena_room(struct arena *, void *array, size_t n, size_t *cap, size_t size);
/* A piece of so many bytes is not needed any more. Returns its memory if it is large. */
void arena_drop(struct arena *, void *p, size_t size);
/* Of all arenas. [any thread] */
size_t arena_all_bytes(void);
#endif
