/* SPDX-License-Identifier: Apache-2.0 */
/* Where the fields of a class of Java are, by what the JVM keeps of the class: numbers for each
 * field, packed since JDK 21. */
#ifndef HOTSPOT_FIELDS_H
#define HOTSPOT_FIELDS_H

#include "memory.h"

#define HOTSPOT_FIELD_BYTES 1024u /* of a class's fields, that are read */

struct hotspot_class {
	const uint32_t *words;
	struct hotspot_memory *m;
	uint64_t klass, pool;
	unsigned char bytes[HOTSPOT_FIELD_BYTES];
	uint32_t n, at;      /* bytes, and where the next field's are */
	uint32_t remaining;  /* fields that hotspot_next_field() has not found yet */
	bool over, unpacked; /* over: something lies beyond what was read; unpacked: up to JDK 20 */
};

struct hotspot_field {
	uint64_t name, type; /* Symbols */
	uint32_t offset;     /* of a static field: in the object of the class */
};

/* An address in two words. */
static inline uint64_t hotspot_address(const uint32_t *words)
{
	return words[0] | (uint64_t)words[1] << 32;
}

/* Is this Symbol the name? */
bool hotspot_is_symbol(const struct hotspot_class *, uint64_t symbol, const char *name);
/* Opens klass, with words and m set. false: it is not known. */
bool hotspot_open_class(struct hotspot_class *);
/* From its first field on. */
void hotspot_first_field(struct hotspot_class *);
/* The next field that the class has in its source. false: there is none, or it is not known. */
bool hotspot_next_field(struct hotspot_class *, struct hotspot_field *);
/* Sets the word to the offset of a field of the class. */
bool hotspot_find_field(struct hotspot_class *, const char *name, uint32_t *word);

#endif
