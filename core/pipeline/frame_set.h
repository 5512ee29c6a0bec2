/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinct frames as consecutive ids from 1 on, in the order of their first addition. Each sample
 * looks up all its frames, so a frame of a file or of the kernel, as most are, takes 16 bytes and
 * is found by two of them: a slot and the frame. For one thread.
 */
#ifndef PIPELINE_FRAME_SET_H
#define PIPELINE_FRAME_SET_H

#include <stddef.h>
#include <stdint.h>

#include "base/dict.h"
#include "unwind/walk.h"

#define FRAME_SET_NONE DICT_NONE

/* What all frames have. */
struct frame_head {
	uint64_t addr;
	uint32_t file; /* of other kinds than FRAME_FILE: id in `rests`; 0: none */
	uint16_t kind, guessed;
};

struct frame_set {
	struct frame_head *heads; /* by id; 0 is none */
	uint32_t n;               /* of heads */
	size_t cap;               /* the same */
	uint32_t *slots;          /* hash table of ids; 0: free */
	uint32_t nslots;          /* a power of two */
	struct dict rests;        /* struct frame_rest, of frames in memory without a file */
	struct arena *arena;      /* borrowed; has all of this */
};

int frame_set_init(struct frame_set *, struct arena *); /* 0 or -ENOMEM */
/* The frame's id; FRAME_SET_NONE: no memory. */
uint32_t frame_set_add(struct frame_set *, const struct walk_frame *);
/* FRAME_SET_NONE: the set lacks the frame. */
uint32_t frame_set_find(const struct frame_set *, const struct walk_frame *);
struct walk_frame frame_set_at(const struct frame_set *, uint32_t id);
/* Bytes of memory, without what growing arrays have in reserve. */
uint64_t frame_set_bytes(const struct frame_set *);
#endif
