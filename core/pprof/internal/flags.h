/* SPDX-License-Identifier: Apache-2.0 */
/* A function's enum fusee_frame_flags and its language in a pprof file, which has no fields for
 * them: at the end of its system name, "name [async,hidden,language ruby]". */
#ifndef PPROF_FLAGS_H
#define PPROF_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fusee/profile.h>

#include "base/buf.h"

#define PPROF_FLAGS_MOST 64u /* bytes that pprof_flags_write() appends at most */

/* Beside enum fusee_frame_flags: of a function whose locations have FUSEE_LOCATION_GUESSED. In the
 * file it is a function of its own, as locations have no flags there. */
#define PPROF_FLAG_GUESSED (1u << 31)

/* The id of that function. The profile's functions have their numbers, and n is that of unknown
 * functions. */
static inline uint64_t pprof_guessed_id(uint32_t n, uint32_t function)
{
	return (uint64_t)n + 1 + function;
}

/* Whether this language can be written. A text with characters besides letters, digits, '-', '_'
 * and '.', or of more than 24 bytes, cannot: to readers of the file the language is then
 * unknown. */
bool pprof_flags_takes(struct fusee_str language);
/* language: empty, or a text that may be written. Nothing is written for 0 and no language. */
void pprof_flags_write(struct buf *, uint32_t flags, struct fusee_str language);
/* Returns the flags at the end of a system name of *len bytes and reduces *len to the bytes before
 * them; *language: a part of the name, or empty. */
uint32_t pprof_flags_read(const char *name, size_t *len, struct fusee_str *language);
#endif
