/* SPDX-License-Identifier: Apache-2.0 */
#include "chunks.h"

#include "fields.h"
#include "words.h"

#define MOST_CLASSES 192u /* classes in vmClasses::_klasses; releases have some 100 */
#define MOST_LAYOUT 4096

/* Finds a class that the JVM knows by a number, and opens it. */
static bool find_class(struct hotspot_class *c, const char *name)
{
	uint64_t list = hotspot_address(c->words + HOTSPOT_CLASSES), symbol;

	for (uint32_t i = 0; i < MOST_CLASSES; i++) {
		if (!hotspot_memory_read(c->m, list + 8ull * i, &c->klass, sizeof(c->klass)))
			return false;
		if (c->klass && !(c->klass & 7) &&
		    hotspot_memory_read(c->m, c->klass + c->words[HOTSPOT_KLASS_NAME], &symbol,
					sizeof(symbol)) &&
		    hotspot_is_symbol(c, symbol, name))
			return hotspot_open_class(c);
	}
	return false;
}

/* How the JVM shortens addresses of objects and of classes. */
static bool read_compression(const struct hotspot_class *chunk, uint32_t *words)
{
	uint64_t oops, classes;
	int oop_shift, class_shift;

	if (!hotspot_memory_read(chunk->m, hotspot_address(words + HOTSPOT_OOPS_BASE), &oops, 8) ||
	    !hotspot_memory_read(chunk->m, hotspot_address(words + HOTSPOT_OOPS_SHIFT), &oop_shift,
				 4) ||
	    !hotspot_memory_read(chunk->m, hotspot_address(words + HOTSPOT_CLASSES_BASE), &classes,
				 8) ||
	    !hotspot_memory_read(chunk->m, hotspot_address(words + HOTSPOT_CLASSES_SHIFT),
				 &class_shift, 4) ||
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
	struct hotspot_class c = {.words = words, .m = m};
	int layout;

	if (!words[HOTSPOT_CLASS_FIELDS] || !words[HOTSPOT_CLASS_POOL] ||
	    !hotspot_address(words + HOTSPOT_CLASSES) ||
	    !hotspot_address(words + HOTSPOT_OOPS_BASE) ||
	    !hotspot_address(words + HOTSPOT_CLASSES_BASE))
		return false;
	if (!find_class(&c, "jdk/internal/vm/Continuation") ||
	    !hotspot_find_field(&c, "tail", &words[HOTSPOT_CONTINUATION_TAIL]))
		return false;
	if (!find_class(&c, "jdk/internal/vm/StackChunk") ||
	    !hotspot_find_field(&c, "parent", &words[HOTSPOT_CHUNK_PARENT]) ||
	    !hotspot_find_field(&c, "size", &words[HOTSPOT_CHUNK_SIZE]) ||
	    !hotspot_find_field(&c, "sp", &words[HOTSPOT_CHUNK_SP]) ||
	    (!hotspot_find_field(&c, "bottom", &words[HOTSPOT_CHUNK_BOTTOM]) &&
	     !hotspot_find_field(&c, "argsize", &words[HOTSPOT_CHUNK_ARGUMENTS])))
		return false;
	if (!read_compression(&c, words) ||
	    !hotspot_memory_read(m, c.klass + words[HOTSPOT_KLASS_LAYOUT], &layout,
				 sizeof(layout)) ||
	    layout < 16 || layout > MOST_LAYOUT)
		return false;
	words[HOTSPOT_CHUNK_STACK] = (uint32_t)layout & ~7u;
	return true;
}
