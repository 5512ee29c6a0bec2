/* SPDX-License-Identifier: Apache-2.0 */
#include "chunks.h"

#include <string.h>

#include "words.h"

#define MOST_CLASSES 192u /* classes in vmClasses::_klasses; releases have some 100 */
#define MOST_FIELDS 32u   /* fields of a class */
#define STREAM 256u       /* bytes of a class's FieldInfo stream that are read */
#define MOST_OFFSET 4096u
#define NAME 40u

/* A class that the JVM knows by a number, and its FieldInfo stream: packed numbers for each
 * field. */
struct class
{
	const uint32_t *words;
	struct hotspot_memory *m;
	uint64_t klass, pool;
	unsigned char stream[STREAM];
	uint32_t n, at;
	bool over; /* a number lies beyond what was read of the stream */
};

static uint64_t address(const uint32_t *words)
{
	return words[0] | (uint64_t)words[1] << 32;
}

static bool is_symbol(const struct class *c, uint64_t symbol, const char *name)
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

/* Finds a class by its name, and reads the beginning of its stream. */
static bool find_class(struct class *c, const char *name)
{
	uint64_t list = address(c->words + HOTSPOT_CLASSES), symbol, fields;
	int length;

	for (uint32_t i = 0; i < MOST_CLASSES; i++) {
		if (!hotspot_memory_read(c->m, list + 8ull * i, &c->klass, sizeof(c->klass)))
			return false;
		if (!c->klass || c->klass & 7 ||
		    !hotspot_memory_read(c->m, c->klass + c->words[HOTSPOT_KLASS_NAME], &symbol,
					 sizeof(symbol)) ||
		    !is_symbol(c, symbol, name))
			continue;
		if (!hotspot_memory_read(c->m, c->klass + c->words[HOTSPOT_CLASS_POOL], &c->pool,
					 sizeof(c->pool)) ||
		    !hotspot_memory_read(c->m, c->klass + c->words[HOTSPOT_CLASS_FIELDS], &fields,
					 sizeof(fields)) ||
		    !hotspot_memory_read(c->m, fields, &length, sizeof(length)) || length <= 0)
			return false;
		c->n = (uint32_t)length < STREAM ? (uint32_t)length : STREAM;
		return hotspot_memory_read(c->m, fields + c->words[HOTSPOT_BYTES_DATA], c->stream,
					   c->n);
	}
	return false;
}

static uint32_t next_number(struct class *c)
{
	uint32_t sum = 0;

	for (int k = 0; k < 5; k++) {
		uint32_t b = c->at < c->n ? c->stream[c->at++] : 0;

		c->over |= !b;
		sum += (b - 1) << 6 * k;
		if (b < 192)
			break;
	}
	return sum;
}

static bool is_set(const struct class *c, uint32_t flags, uint32_t word)
{
	return c->words[word] < 32 && flags >> c->words[word] & 1;
}

/* Sets the word to the offset of a field of the class. */
static bool find_field(struct class *c, const char *name, uint32_t *word)
{
	uint32_t fields, slot, offset, flags;
	uint64_t symbol;

	c->at = 0;
	c->over = false;
	fields = next_number(c);
	next_number(c); /* the number of fields that the JVM has added; they come last */
	for (uint32_t i = 0; i < fields && i < MOST_FIELDS; i++) {
		slot = next_number(c);
		next_number(c); /* its type */
		offset = next_number(c);
		next_number(c); /* private, .. */
		flags = next_number(c);
		if (is_set(c, flags, HOTSPOT_FIELD_INITIALIZED))
			next_number(c);
		if (is_set(c, flags, HOTSPOT_FIELD_GENERIC))
			next_number(c);
		if (is_set(c, flags, HOTSPOT_FIELD_CONTENDED))
			next_number(c);
		if (c->over || slot > 0xffff)
			return false;
		if (!hotspot_memory_read(c->m, c->pool + c->words[HOTSPOT_POOL_SIZE] + 8ull * slot,
					 &symbol, sizeof(symbol)) ||
		    !is_symbol(c, symbol & ~7ull, name))
			continue;
		*word = offset;
		return offset >= 8 && offset < MOST_OFFSET;
	}
	return false;
}

/* How the JVM shortens addresses of objects and of classes. */
static bool read_compression(const struct class *chunk, uint32_t *words)
{
	uint64_t oops, classes;
	int oop_shift, class_shift;

	if (!hotspot_memory_read(chunk->m, address(words + HOTSPOT_OOPS_BASE), &oops, 8) ||
	    !hotspot_memory_read(chunk->m, address(words + HOTSPOT_OOPS_SHIFT), &oop_shift, 4) ||
	    !hotspot_memory_read(chunk->m, address(words + HOTSPOT_CLASSES_BASE), &classes, 8) ||
	    !hotspot_memory_read(chunk->m, address(words + HOTSPOT_CLASSES_SHIFT), &class_shift,
				 4) ||
	    oop_shift < 0 || oop_shift > 8 || class_shift < 0 || class_shift > 16 ||
	    (chunk->klass - classes) >> class_shift >> 32)
		return false;
	words[HOTSPOT_OOP_BASE] = (uint32_t)oops;
	words[HOTSPOT_OOP_BASE + 1] = (uint32_t)(oops >> 32);
	words[HOTSPOT_OOP_SHIFT] = (uint32_t)oop_shift;
	words[HOTSPOT_CHUNK_CLASS] = (uint32_t)((chunk->klass - classes) >> class_shift);
	return true;
}

bool hotspot_find_chunks(struct hotspot_memory *m, uint32_t *words)
{
	struct class c = {.words = words, .m = m};
	int layout;

	if (!words[HOTSPOT_CLASS_FIELDS] || !words[HOTSPOT_CLASS_POOL] ||
	    !address(words + HOTSPOT_CLASSES) || !address(words + HOTSPOT_OOPS_BASE) ||
	    !address(words + HOTSPOT_CLASSES_BASE))
		return false;
	if (!find_class(&c, "jdk/internal/vm/Continuation") ||
	    !find_field(&c, "tail", &words[HOTSPOT_CONTINUATION_TAIL]))
		return false;
	if (!find_class(&c, "jdk/internal/vm/StackChunk") ||
	    !find_field(&c, "parent", &words[HOTSPOT_CHUNK_PARENT]) ||
	    !find_field(&c, "size", &words[HOTSPOT_CHUNK_SIZE]) ||
	    !find_field(&c, "sp", &words[HOTSPOT_CHUNK_SP]) ||
	    (!find_field(&c, "bottom", &words[HOTSPOT_CHUNK_BOTTOM]) &&
	     !find_field(&c, "argsize", &words[HOTSPOT_CHUNK_ARGUMENTS])))
		return false;
	if (!read_compression(&c, words) ||
	    !hotspot_memory_read(m, c.klass + words[HOTSPOT_KLASS_LAYOUT], &layout,
				 sizeof(layout)) ||
	    layout < 16 || layout > (int)MOST_OFFSET)
		return false;
	words[HOTSPOT_CHUNK_STACK] = (uint32_t)layout & ~7u;
	return true;
}
