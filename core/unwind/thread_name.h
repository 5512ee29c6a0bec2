/* SPDX-License-Identifier: Apache-2.0 */
/* Names of threads that language unwinders push (FUSEE_PUSH_THREAD), as Java's, of which the kernel
 * keeps 15 bytes at most. For one thread. */
#ifndef UNWIND_THREAD_NAME_H
#define UNWIND_THREAD_NAME_H

#include <stdbool.h>

#include "unwind/claims.h"
#include "unwind/internal/walk_frames.h"

#define THREAD_NAME_BYTES 256u /* with the terminator */

/* Removes the frames that say the thread's name from the walk. true: it is this. claims may be
 * NULL. */
bool thread_name_take(struct walk *, struct claims *, char name[THREAD_NAME_BYTES]);
#endif
