/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the JVM that say what a thread does: collect garbage, compile, or other work of the
 * JVM's own. */
#ifndef HOTSPOT_THREADS_H
#define HOTSPOT_THREADS_H

#include <fusee/helpers.h>

/* In inspect(): claims those that the library has symbols of, so that the step shows a frame of the
 * thread's work. Their number, or -errno. */
int hotspot_claim_threads(const struct fusee_self *, uint64_t file);

/* The name of such a frame. NULL: there is none of this number. */
const char *hotspot_work_name(uint64_t work); /* enum hotspot_work */

#endif
