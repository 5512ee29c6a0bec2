/* SPDX-License-Identifier: Apache-2.0 */
#include "lists.h"

#define MOST_OFFSET 65536u /* of a field, and the largest size of a type */

static enum hotspot_lists check_layout(struct hotspot_memory *m, const struct hotspot_jvm *jvm)
{
	uint64_t v;

	for (uint32_t i = 0; i < LAYOUT_VARIABLES; i++) {
		if (!hotspot_memory_read(m, jvm->bias + jvm->table[i], &v, sizeof(v)))
			return HOTSPOT_LISTS_UNREADABLE;
		if (v != hotspot_layout[i].value)
			return HOTSPOT_LISTS_STRANGE;
	}
	return HOTSPOT_LISTS_READ;
}

/* Sets the words of what is required by its entry at this address. */
static enum hotspot_lists take(struct hotspot_memory *m, uint32_t *words, const struct required *w,
			       uint64_t entry)
{
	uint32_t at = w->is_static ? LAYOUT_FIELD_ADDRESS
		      : w->field   ? LAYOUT_FIELD_OFFSET
				   : LAYOUT_TYPE_SIZE;
	uint64_t v;

	if (!hotspot_memory_read(m, entry + at, &v, sizeof(v)))
		return HOTSPOT_LISTS_UNREADABLE;
	if (!w->is_static && v >= MOST_OFFSET)
		return HOTSPOT_LISTS_STRANGE;
	words[w->word] = (uint32_t)v;
	if (w->is_static)
		words[w->word + 1] = (uint32_t)(v >> 32);
	return HOTSPOT_LISTS_READ;
}

enum hotspot_lists hotspot_read_lists(struct hotspot_memory *m, struct hotspot_jvm *jvm)
{
	enum hotspot_lists r = check_layout(m, jvm);

	for (uint32_t i = 0; i < REQUIRED && r == HOTSPOT_LISTS_READ; i++) {
		uint64_t vaddr = jvm->table[LAYOUT_VARIABLES + i];

		if (vaddr)
			r = take(m, jvm->words, &hotspot_required[i], jvm->bias + vaddr);
	}
	return r;
}
