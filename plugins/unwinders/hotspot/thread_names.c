/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_names.h"

#include "fields.h"
#include "lists.h"
#include "words.h"

#define WIDE_HEADER 16u /* bytes of an object's header with a class's complete address */
#define CLOSE_TEXT_VERSION                                                    \
	23 /* from this on texts follow their length at once behind that, too \
	    */

static bool read_pointer(struct hotspot_memory *m, const uint32_t *at, uint64_t *to)
{
	uint64_t from = hotspot_address(at);

	return from && hotspot_memory_read(m, from, to, sizeof(*to)) && *to && !(*to & 7);
}

static bool open_class(struct hotspot_class *c, const uint32_t *at)
{
	return read_pointer(c->m, at, &c->klass) && hotspot_open_class(c);
}

/* Is this the ZGC whose static variable and field these are, and in use? The variable that the
 * field leads to is 0 otherwise. */
static bool is_used(struct hotspot_memory *m, const uint32_t *instance, uint32_t field)
{
	uint64_t own, mask, value;

	return field && read_pointer(m, instance, &own) &&
	       hotspot_memory_read(m, own + field, &mask, sizeof(mask)) && mask &&
	       hotspot_memory_read(m, mask, &value, sizeof(value)) && value;
}

/* Is a field of the class a reference that only one of 4 bytes can be? */
static bool is_narrow(struct hotspot_class *c)
{
	struct hotspot_field f;
	char type;

	hotspot_first_field(c);
	while (hotspot_next_field(c, &f))
		if (f.offset & 4 &&
		    hotspot_memory_read(c->m, f.type + c->words[HOTSPOT_SYMBOL_BODY], &type, 1) &&
		    (type == 'L' || type == '['))
			return true;
	return false;
}

/* Where the first field of an object is. */
static uint32_t header_of(struct hotspot_class *c)
{
	uint32_t least = WIDE_HEADER;
	struct hotspot_field f;

	hotspot_first_field(c);
	while (hotspot_next_field(c, &f))
		least = f.offset < least ? f.offset : least;
	return least;
}

/* Where an array has its length and its bytes. */
static bool find_text(struct hotspot_class *string, uint32_t *words)
{
	uint32_t header = header_of(string), version;

	if (header != 8 && header != 12 && header != WIDE_HEADER)
		return false;
	if (!hotspot_memory_read(string->m, hotspot_address(words + HOTSPOT_VERSION), &version,
				 sizeof(version)))
		return false;
	words[HOTSPOT_TEXT_LENGTH] = header;
	words[HOTSPOT_TEXT_BYTES] = header + 4;
	if (header == WIDE_HEADER && (version < CLOSE_TEXT_VERSION || hotspot_has_one_heap(words)))
		words[HOTSPOT_TEXT_BYTES] += 4;
	return true;
}

/* How addresses are shortened. */
static bool read_compression(struct hotspot_memory *m, uint32_t *words)
{
	uint64_t base;
	int shift;

	if (!hotspot_memory_read(m, hotspot_address(words + HOTSPOT_OOPS_BASE), &base, 8) ||
	    !hotspot_memory_read(m, hotspot_address(words + HOTSPOT_OOPS_SHIFT), &shift, 4) ||
	    shift < 0 || shift > 8)
		return false;
	words[HOTSPOT_OOP_BASE] = (uint32_t)base;
	words[HOTSPOT_OOP_BASE + 1] = (uint32_t)(base >> 32);
	words[HOTSPOT_OOP_SHIFT] = (uint32_t)shift;
	return true;
}

bool hotspot_find_thread_names(struct hotspot_memory *m, uint32_t *words)
{
	struct hotspot_class thread = {.words = words, .m = m}, string = thread;
	uint32_t eetop;
	uint64_t heap;

	if (!words[HOTSPOT_THREAD_OBJECT] || !words[HOTSPOT_HEAP_MOVES] ||
	    !read_pointer(m, words + HOTSPOT_COLLECTED_HEAP, &heap) ||
	    is_used(m, words + HOTSPOT_ZGC, words[HOTSPOT_ZGC_MASK]) ||
	    is_used(m, words + HOTSPOT_OLD_ZGC, words[HOTSPOT_OLD_ZGC_MASK]))
		return false;
	if (!open_class(&thread, words + HOTSPOT_THREAD_CLASS) ||
	    !hotspot_find_field(&thread, "name", &words[HOTSPOT_THREAD_NAME]) ||
	    !hotspot_find_field(&thread, "eetop", &eetop) ||
	    !open_class(&string, words + HOTSPOT_STRING_CLASS) ||
	    !hotspot_find_field(&string, "value", &words[HOTSPOT_STRING_VALUE]))
		return false;
	if (!hotspot_find_field(&string, "coder", &words[HOTSPOT_STRING_CODER]))
		words[HOTSPOT_STRING_CODER] = 0;
	words[HOTSPOT_NARROW] = is_narrow(&thread);
	if (!find_text(&string, words) || !read_compression(m, words))
		return false;
	heap += words[HOTSPOT_HEAP_MOVES];
	words[HOTSPOT_IS_MOVING] = (uint32_t)heap;
	words[HOTSPOT_IS_MOVING + 1] = (uint32_t)(heap >> 32);
	words[HOTSPOT_THREAD_EETOP] = eetop;
	return true;
}
