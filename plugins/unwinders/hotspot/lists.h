/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOTSPOT_LISTS_H
#define HOTSPOT_LISTS_H

#include "memory.h"
#include "names.h"

enum hotspot_lists {
	HOTSPOT_LISTS_READ, /* the words up to HOTSPOT_FIELD_WORDS are set */
	HOTSPOT_LISTS_UNREADABLE,
	HOTSPOT_LISTS_STRANGE, /* the lists are laid out otherwise */
};

/* Is this JVM of 8? */
static inline bool hotspot_has_one_heap(const uint32_t *words)
{
	return words[HOTSPOT_ONE_HEAP] || words[HOTSPOT_ONE_HEAP + 1];
}

/* Reads the lists with which the JVM describes itself. */
enum hotspot_lists hotspot_read_lists(struct hotspot_memory *, struct hotspot_jvm *);

#endif
