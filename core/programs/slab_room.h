/* SPDX-License-Identifier: Apache-2.0 */
/* Which words of slabs are free: of memory that BPF programs read in pieces of one size. */
#ifndef PROGRAMS_SLAB_ROOM_H
#define PROGRAMS_SLAB_ROOM_H

#include <stdint.h>

struct slab_hole {
	uint32_t at, words;
};

struct slab_room {
	uint32_t slab_words;     /* of a slab */
	struct slab_hole *holes; /* by address */
	uint32_t n, cap;
	uint64_t used_words;
};

/* The words [at, at + words) are free. 0 or -ENOMEM. */
int slab_room_init(struct slab_room *, uint32_t slab_words, uint32_t at, uint32_t words);
void slab_room_fini(struct slab_room *);
/* Takes words that cross no more slabs than they must. 0 or -ENOSPC. */
int slab_room_take(struct slab_room *, uint32_t words, uint32_t *at);
void slab_room_give(struct slab_room *, uint32_t at, uint32_t words);
#endif
