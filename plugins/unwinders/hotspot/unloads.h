/* SPDX-License-Identifier: Apache-2.0 */
/* Where a JVM counts the classes that it has unloaded, and those that were redefined. */
#ifndef HOTSPOT_UNLOADS_H
#define HOTSPOT_UNLOADS_H

#include "names.h"

/* Sets HOTSPOT_UNLOADED and HOTSPOT_REDEFINED. false: nothing counts them, or not yet. */
bool hotspot_find_unloads(struct hotspot_memory *, struct hotspot_jvm *);

#endif
