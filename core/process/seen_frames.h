/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What samples have shown of frames in code that nothing describes. A place is a pc; an offset is
 * the distance from sp to a word that may be the frame's return address there. Of the offsets that
 * all samples of a place allow, the nearest is taken for it. Such code is entered by an
 * interpreter's calls, which are few: an offset whose word is none of those that many samples have
 * belongs to a call that has ended. Bounded: the place that was sampled longest ago is forgotten.
 * For one thread.
 */
#ifndef PROCESS_SEEN_FRAMES_H
#define PROCESS_SEEN_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#define SEEN_OFFSETS 12u /* that are kept of a place, the nearest */

struct seen_frames;

/* What one sample allows, the nearest first. */
struct seen_sample {
	uint64_t process, pc;
	uint64_t map_lo; /* of the mapping that has pc */
	uint64_t time;
	uint32_t n;
	uint16_t offsets[SEEN_OFFSETS];
};

struct seen_frames *seen_frames_new(void); /* NULL: no memory */
void seen_frames_free(struct seen_frames *);
/* The offset of a place that so many samples agree on that no other needs to be looked for. */
bool seen_frames_settled(struct seen_frames *, uint64_t process, uint64_t pc, uint16_t *offset);
/* Adds a sample with n > 0, unless it was added before. The nearest offset of the place. */
uint16_t seen_frames_add(struct seen_frames *, const struct seen_sample *);
/* The word there, of the same sample, is this. Is the offset confirmed by other samples of the
 * place, or of the mapping? */
bool seen_frames_confirm(struct seen_frames *, const struct seen_sample *, uint16_t offset,
			 uint64_t word);
/* Have many samples of the mapping this word for their return address? */
bool seen_frames_trusted(struct seen_frames *, uint64_t process, uint64_t map_lo, uint64_t word);
/* The offset of the place was wrong. */
void seen_frames_forget(struct seen_frames *, uint64_t process, uint64_t pc);
#endif
