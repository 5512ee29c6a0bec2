/* SPDX-License-Identifier: Apache-2.0 */
#include "fields.h"

#include <string.h>

#include "words.h"

#define MOST_FIELDS 96u /* fields of a class */
#define MOST_OFFSET 4096u
#define MOST_NUMBERS 16u /* of a field that is not packed; releases have 6 */
#define NAME 40u

bool hotspot_is_symbol(const struct hotspot_class *c, uint64_t symbol, const char *name)
{
	size_t n = strlen(name);
	char text[NAME];
	uint16_t length;

	return hotspot_memory_read(c->m, symbol + c->words[HOTSPOT_SYMBOL_LENGTH], &length,
				   sizeof(length)) &&
	       length == n && n <= sizeof(text) &&
	       hotspot_memory_read(c->m, symbol + c->words[HOTSPOT_SYMBOL_BODY], text,
				   (uint32_t)n) &&
	       !memcmp(text, name, n);
}

/* Are the numbers of a field where none goes beyond the others? */
static bool is_laid_out(const uint32_t *words)
{
	uint32_t n = words[HOTSPOT_OLD_FIELD];

	return n && n <= MOST_NUMBERS && words[HOTSPOT_OLD_FIELD_NAME] < n &&
	       words[HOTSPOT_OLD_FIELD_TYPE] < n && words[HOTSPOT_OLD_FIELD_LOW] < n &&
	       words[HOTSPOT_OLD_FIELD_HIGH] < n && words[HOTSPOT_OLD_FIELD_TAG] < 16;
}

/* Reads the array of bytes, or of numbers of 2 bytes, at the field of the class. */
static bool read_array(struct hotspot_class *c, uint32_t field, uint32_t data, uint32_t bytes)
{
	uint64_t array;
	int length;

	if (!hotspot_memory_read(c->m, c->klass + field, &array, sizeof(array)) ||
	    !hotspot_memory_read(c->m, array, &length, sizeof(length)) || length <= 0)
		return false;
	c->n = (uint32_t)length < HOTSPOT_FIELD_BYTES / bytes ? (uint32_t)length * bytes
							      : HOTSPOT_FIELD_BYTES;
	return hotspot_memory_read(c->m, array + data, c->bytes, c->n);
}

bool hotspot_open_class(struct hotspot_class *c)
{
	const uint32_t *w = c->words;

	c->unpacked = !w[HOTSPOT_CLASS_FIELDS];
	if (!w[HOTSPOT_CLASS_POOL] ||
	    !hotspot_memory_read(c->m, c->klass + w[HOTSPOT_CLASS_POOL], &c->pool, sizeof(c->pool)))
		return false;
	if (!c->unpacked)
		return read_array(c, w[HOTSPOT_CLASS_FIELDS], w[HOTSPOT_BYTES_DATA], 1);
	return w[HOTSPOT_CLASS_OLD_FIELDS] && w[HOTSPOT_CLASS_NFIELDS] && is_laid_out(w) &&
	       read_array(c, w[HOTSPOT_CLASS_OLD_FIELDS], w[HOTSPOT_SHORTS_DATA], 2);
}

static uint32_t next_number(struct hotspot_class *c)
{
	uint32_t sum = 0;

	for (int k = 0; k < 5; k++) {
		uint32_t b = c->at < c->n ? c->bytes[c->at++] : 0;

		c->over |= !b;
		sum += (b - 1) << 6 * k;
		if (b < 192)
			break;
	}
	return sum;
}

static bool is_set(const struct hotspot_class *c, uint32_t flags, uint32_t word)
{
	return c->words[word] < 32 && flags >> c->words[word] & 1;
}

void hotspot_first_field(struct hotspot_class *c)
{
	uint16_t n = 0;

	c->at = 0;
	c->over = false;
	if (!c->unpacked) {
		c->remaining = next_number(c);
		next_number(c); /* the number of fields that the JVM has added; they come last */
	} else {
		hotspot_memory_read(c->m, c->klass + c->words[HOTSPOT_CLASS_NFIELDS], &n,
				    sizeof(n));
		c->remaining = n;
	}
	c->remaining = c->remaining < MOST_FIELDS ? c->remaining : MOST_FIELDS;
}

/* Slot of the class's pool, which is a Symbol. */
static bool read_slot(struct hotspot_class *c, uint32_t slot, uint64_t *symbol)
{
	bool read = slot <= 0xffff &&
		    hotspot_memory_read(c->m, c->pool + c->words[HOTSPOT_POOL_SIZE] + 8ull * slot,
					symbol, sizeof(*symbol));

	*symbol &= ~7ull;
	return read;
}

/* The numbers of a field up to JDK 20. */
static bool next_unpacked(struct hotspot_class *c, struct hotspot_field *f)
{
	const uint32_t *w = c->words;
	uint16_t number[MOST_NUMBERS];
	uint32_t bytes = 2 * w[HOTSPOT_OLD_FIELD], both;

	if (c->n - c->at < bytes)
		return false;
	memcpy(number, c->bytes + c->at, bytes);
	c->at += bytes;
	both = number[w[HOTSPOT_OLD_FIELD_LOW]] | (uint32_t)number[w[HOTSPOT_OLD_FIELD_HIGH]] << 16;
	f->offset = both >> w[HOTSPOT_OLD_FIELD_TAG];
	return read_slot(c, number[w[HOTSPOT_OLD_FIELD_NAME]], &f->name) &&
	       read_slot(c, number[w[HOTSPOT_OLD_FIELD_TYPE]], &f->type);
}

static bool next_packed(struct hotspot_class *c, struct hotspot_field *f)
{
	uint32_t slot = next_number(c), type = next_number(c), flags;

	f->offset = next_number(c);
	next_number(c); /* private, .. */
	flags = next_number(c);
	if (is_set(c, flags, HOTSPOT_FIELD_INITIALIZED))
		next_number(c);
	if (is_set(c, flags, HOTSPOT_FIELD_GENERIC))
		next_number(c);
	if (is_set(c, flags, HOTSPOT_FIELD_CONTENDED))
		next_number(c);
	return !c->over && read_slot(c, slot, &f->name) && read_slot(c, type, &f->type);
}

bool hotspot_next_field(struct hotspot_class *c, struct hotspot_field *f)
{
	if (!c->remaining)
		return false;
	c->remaining--;
	return c->unpacked ? next_unpacked(c, f) : next_packed(c, f);
}

bool hotspot_find_field(struct hotspot_class *c, const char *name, uint32_t *word)
{
	struct hotspot_field f;

	hotspot_first_field(c);
	while (hotspot_next_field(c, &f)) {
		if (!hotspot_is_symbol(c, f.name, name))
			continue;
		*word = f.offset;
		return f.offset >= 8 && f.offset < MOST_OFFSET;
	}
	return false;
}
