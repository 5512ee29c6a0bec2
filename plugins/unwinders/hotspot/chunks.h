/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOTSPOT_CHUNKS_H
#define HOTSPOT_CHUNKS_H

#include "memory.h"

/* Sets the words that lead from a continuation to the frames of a virtual thread in Java's heap.
 * false: they are not known, or not yet; HOTSPOT_CHUNK_STACK is 0 then. */
bool hotspot_find_chunks(struct hotspot_memory *, uint32_t *words);

#endif
