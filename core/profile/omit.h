/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames reports omit: an interpreter's own code, where frames of its language are in the
 * stack; where values are of memory, the functions that every program allocates it by. */
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

/* An expression for the complete names of functions that allocate: RE2's, as pprof's drop_frames,
 * and POSIX's. */
#define OMIT_ALLOCATORS                                                                \
	"(__GI_|__libc_|__|je_|tc_|mi_)*(malloc|calloc|realloc|reallocf|reallocarray|" \
	"aligned_alloc|memalign|posix_memalign|valloc|pvalloc|mallocx|rallocx)|"       \
	"operator new(\\[\\])?([(].*)?|_Zn[wa]m.*"

/* Is it a type of memory, allocated or in use, as in Go's heap profiles? */
bool omit_allocators(struct fusee_str type);
#endif
