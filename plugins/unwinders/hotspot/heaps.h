/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOTSPOT_HEAPS_H
#define HOTSPOT_HEAPS_H

#include <fusee/helpers.h>

#include "names.h"

/* Claims the heaps of code that the JVM of a process has by now, and tells the step of them. Does
 * nothing if it is too early to try again. 0 or -errno. */
int hotspot_claim_heaps(const struct fusee_self *, uint64_t process, struct hotspot_jvm *);

#endif
