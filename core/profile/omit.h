/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames reports omit: an interpreter's own code, where frames of its language are in the
 * stack. */
#ifndef PROFILE_OMIT_H
#define PROFILE_OMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/profile.h>

#define OMIT_LANGUAGES 8

/* The languages whose frames are in a stack. */
struct omit {
	uint32_t n, language[OMIT_LANGUAGES]; /* strings, as frame_type */
	bool any; /* there are frames of a language that is not known, or of too many */
};

/* Is it a frame of a language, which has no machine code? */
bool omit_is_language(const struct fusee_location *);
void omit_init(struct omit *, const struct fusee_profile *, const struct fusee_stack *);
/* Is the location an interpreter's code, and is its language in the stack? */
bool omit_location(const struct omit *, const struct fusee_location *);
#endif
