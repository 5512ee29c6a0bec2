/* SPDX-License-Identifier: Apache-2.0 */
#include "lists.h"

#define MOST_OFFSET 65536u /* the largest offset of a field, and the largest size of a type */

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

static enum hotspot_lists take_address(struct hotspot_memory *m, uint32_t *words, uint64_t at)
{
	uint64_t v;

	if (!hotspot_memory_read(m, at, &v, sizeof(v)))
		return HOTSPOT_LISTS_UNREADABLE;
	words[0] = (uint32_t)v;
	words[1] = (uint32_t)(v >> 32);
	return HOTSPOT_LISTS_READ;
}

/* Sets the word to the size of the number in the entry's field: 2 or 4, by the name of its type. */
static enum hotspot_lists take_bytes(struct hotspot_memory *m, uint32_t *word, uint64_t entry)
{
	static const char *const short_types[] = {"short", "unsigned short", "int16_t", "uint16_t",
						  "u2"};
	char type[24];
	uint64_t at;

	if (!hotspot_memory_read(m, entry + LAYOUT_FIELD_TEXT, &at, sizeof(at)))
		return HOTSPOT_LISTS_UNREADABLE;
	hotspot_memory_text(m, at, type, sizeof(type));
	*word = 4;
	for (size_t i = 0; i < sizeof(short_types) / sizeof(*short_types); i++)
		if (!strcmp(type, short_types[i]))
			*word = 2;
	return *type ? HOTSPOT_LISTS_READ : HOTSPOT_LISTS_STRANGE;
}

/* Does the entry's field have an OopHandle? */
static enum hotspot_lists take_handle(struct hotspot_memory *m, uint32_t *word, uint64_t entry)
{
	char type[24];
	uint64_t at;

	if (!hotspot_memory_read(m, entry + LAYOUT_FIELD_TEXT, &at, sizeof(at)))
		return HOTSPOT_LISTS_UNREADABLE;
	hotspot_memory_text(m, at, type, sizeof(type));
	*word = !strcmp(type, "OopHandle");
	return *type ? HOTSPOT_LISTS_READ : HOTSPOT_LISTS_STRANGE;
}

/* Sets the words of a requirement from its entry at this address. */
static enum hotspot_lists take(struct hotspot_memory *m, uint32_t *words, const struct required *q,
			       uint64_t entry)
{
	uint64_t v;
	uint32_t constant;

	if (q->kind == STATIC)
		return take_address(m, words + q->word, entry + LAYOUT_FIELD_ADDRESS);
	if (q->kind == BYTES)
		return take_bytes(m, words + q->word, entry);
	if (q->kind == HANDLE)
		return take_handle(m, words + q->word, entry);
	if (q->kind == CONSTANT) {
		if (!hotspot_memory_read(m, entry + LAYOUT_CONSTANT_VALUE, &constant, 4))
			return HOTSPOT_LISTS_UNREADABLE;
		words[q->word] = constant;
		return HOTSPOT_LISTS_READ;
	}
	if (!hotspot_memory_read(
		    m, entry + (q->kind == FIELD ? LAYOUT_FIELD_OFFSET : LAYOUT_TYPE_SIZE), &v, 8))
		return HOTSPOT_LISTS_UNREADABLE;
	words[q->word] = (uint32_t)v;
	return v < MOST_OFFSET ? HOTSPOT_LISTS_READ : HOTSPOT_LISTS_STRANGE;
}

/* Sets HOTSPOT_EXCESS, which is subtracted from each byte of a packed number: 1 since JDK 20. */
static enum hotspot_lists take_version(struct hotspot_memory *m, uint32_t *words)
{
	uint32_t version;

	if (!hotspot_memory_read(
		    m, words[HOTSPOT_VERSION] | (uint64_t)words[HOTSPOT_VERSION + 1] << 32,
		    &version, sizeof(version)))
		return HOTSPOT_LISTS_UNREADABLE;
	/* JDK 8 numbers the JVM apart: it is version 25 there */
	words[HOTSPOT_EXCESS] = version >= 20 && !hotspot_has_one_heap(words);
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
	return r == HOTSPOT_LISTS_READ ? take_version(m, jvm->words) : r;
}
