/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOTSPOT_THREAD_NAMES_H
#define HOTSPOT_THREAD_NAMES_H

#include "memory.h"

/* Sets the words that lead from a JavaThread to its name. false: they are not known, or not yet;
 * HOTSPOT_THREAD_EETOP is 0 then. */
bool hotspot_find_thread_names(struct hotspot_memory *, uint32_t *words);

#endif
