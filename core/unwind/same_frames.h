/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pushed frames with the same names. A class that is loaded again, a method that is compiled again,
 * a function that is made again has other words in its frames each time, and a profile shows them
 * as one. So a frame is replaced by the first that has its names: what is kept of samples grows
 * with what the profile will have, and not with the time. For one thread.
 */
#ifndef UNWIND_SAME_FRAMES_H
#define UNWIND_SAME_FRAMES_H

#include <stdint.h>

#include "unwind/claims.h"
#include "unwind/internal/walk_frames.h"

/* What is known of frames; it has a limit, behind which frames are looked at anew. */
struct same_frames;

/* Replaces pushed frames of the walk. *same: NULL at first. claims may be NULL. */
void same_frames_replace(struct same_frames **same, struct claims *, struct walk *);
/* Calls each() with the frames that take the place of others. s may be NULL. */
void same_frames_each(const struct same_frames *,
		      void (*each)(struct claims *, const struct walk_frame *), struct claims *);
/* Frames that are known, and how many of them have names of their own. */
void same_frames_count(const struct same_frames *, uint32_t *known, uint32_t *names);
void same_frames_free(struct same_frames *); /* NULL is fine */
#endif
