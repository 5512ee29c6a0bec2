/* SPDX-License-Identifier: Apache-2.0 */
#include "heaps.h"

#include <stdlib.h>

#include "chunks.h"
#include "fields.h"
#include "lists.h"
#include "thread_names.h"
#include "unloads.h"

#define MOST_HEAP (1ull << 32) /* bytes of a heap of code; the JVM allows 2 GiB for all */
#define MOST_BLOCKS 512u       /* reads of memory that one try makes at most */
#define TRIES 32u
#define PAUSE_NS 20000000u /* .. times the number of tries before the last */

struct heap {
	uint64_t lo, hi, map;
	uint32_t shift;
};

static uint64_t address(const uint32_t *words)
{
	return words[0] | (uint64_t)words[1] << 32;
}

static void put_address(uint32_t *words, uint64_t v)
{
	words[0] = (uint32_t)v;
	words[1] = (uint32_t)(v >> 32);
}

static bool read_heap(struct hotspot_memory *m, const uint32_t *w, uint64_t at, struct heap *h)
{
	uint64_t memory = at + w[HOTSPOT_HEAP_MEMORY], segmap = at + w[HOTSPOT_HEAP_SEGMAP];

	return hotspot_memory_read(m, memory + w[HOTSPOT_SPACE_LOW], &h->lo, sizeof(h->lo)) &&
	       hotspot_memory_read(m, memory + w[HOTSPOT_SPACE_END], &h->hi, sizeof(h->hi)) &&
	       hotspot_memory_read(m, segmap + w[HOTSPOT_SPACE_LOW], &h->map, sizeof(h->map)) &&
	       hotspot_memory_read(m, at + w[HOTSPOT_HEAP_LOG2], &h->shift, sizeof(h->shift)) &&
	       h->lo && h->lo < h->hi && h->hi - h->lo <= MOST_HEAP && h->map && h->shift >= 4 &&
	       h->shift <= 16;
}

/* Sets *data to the address of the array of pointers to the heaps, and *n to its length. false: the
 * array is not there yet. */
static bool find_heaps(struct hotspot_memory *m, const uint32_t *w, uint64_t *data, uint32_t *n)
{
	uint64_t array;

	*data = address(w + HOTSPOT_ONE_HEAP);
	*n = 1;
	return hotspot_has_one_heap(w) ||
	       (hotspot_memory_read(m, address(w + HOTSPOT_HEAPS), &array, sizeof(array)) &&
		array && hotspot_memory_read(m, array + w[HOTSPOT_ARRAY_LEN], n, sizeof(*n)) &&
		*n <= HOTSPOT_MOST_HEAPS &&
		hotspot_memory_read(m, array + w[HOTSPOT_ARRAY_DATA], data, sizeof(*data)));
}

/* Writes the heaps of code into the words. Returns their number. */
static uint32_t read_heaps(struct hotspot_memory *m, uint32_t *w)
{
	uint64_t data, at;
	struct heap h;
	uint32_t n, i;

	if (!find_heaps(m, w, &data, &n))
		return 0;
	for (i = 0; i < n; i++) {
		uint32_t *to = w + HOTSPOT_FIRST_HEAP + i * HOTSPOT_HEAP_WORDS;

		if (!hotspot_memory_read(m, data + 8ull * i, &at, sizeof(at)) ||
		    !read_heap(m, w, at, &h))
			break;
		put_address(to + HOTSPOT_HEAP_LO, h.lo);
		put_address(to + HOTSPOT_HEAP_HI, h.hi);
		put_address(to + HOTSPOT_HEAP_MAP, h.map);
		to[HOTSPOT_HEAP_SHIFT] = h.shift;
	}
	w[HOTSPOT_NHEAPS] = i;
	return i;
}

static bool is_claimed(const struct hotspot_jvm *jvm, uint64_t heap)
{
	uint32_t i = 0;

	while (i < jvm->nheaps && jvm->heaps[i] != heap)
		i++;
	return i < jvm->nheaps;
}

/* Claims heaps that are not yet claimed. A JVM that starts adds them anywhere in its list. 0 or
 * -errno. */
static int claim(const struct fusee_self *self, uint64_t process, struct hotspot_jvm *jvm)
{
	const struct fusee_unwinder_host *host = self->host->unwinder;
	struct fusee_claim c = FUSEE_SIZED(struct fusee_claim, .flags = FUSEE_CLAIM_STEP |
									FUSEE_CLAIM_NAME |
									FUSEE_CLAIM_LIVE);
	int err = host->process_slab(self->in, process, jvm->words, HOTSPOT_WORDS);

	for (uint32_t i = 0; !err && i < jvm->words[HOTSPOT_NHEAPS]; i++) {
		const uint32_t *w = jvm->words + HOTSPOT_FIRST_HEAP + i * HOTSPOT_HEAP_WORDS;

		c.range = (struct fusee_range){address(w + HOTSPOT_HEAP_LO),
					       address(w + HOTSPOT_HEAP_HI)};
		if (jvm->nheaps == HOTSPOT_MOST_HEAPS || is_claimed(jvm, c.range.lo))
			continue;
		err = host->process_claim(self->in, process, &c);
		if (!err)
			jvm->heaps[jvm->nheaps++] = c.range.lo;
	}
	return err;
}

/* One try to find and claim the heaps. 0, also if there are none yet; -EAGAIN: memory could not be
 * read now; or -errno. */
static int try_claim(const struct fusee_self *self, uint64_t process, struct hotspot_jvm *jvm)
{
	struct hotspot_memory *m = jvm->memory;
	enum hotspot_lists lists = HOTSPOT_LISTS_READ;
	bool found = false;
	int err = 0;

	if (!jvm->read) {
		lists = hotspot_read_lists(m, jvm);
		jvm->read = lists == HOTSPOT_LISTS_READ;
	}
	if (jvm->read && read_heaps(m, jvm->words) > jvm->nheaps)
		err = claim(self, process, jvm);
	/* the JVM loads these classes after it has made the heaps of code */
	if (!err && jvm->nheaps) {
		found |= !jvm->words[HOTSPOT_CHUNK_STACK] && hotspot_find_chunks(m, jvm->words);
		found |= !jvm->words[HOTSPOT_THREAD_EETOP] &&
			 hotspot_find_thread_names(m, jvm->words);
		found |= !hotspot_address(jvm->words + HOTSPOT_UNLOADED) &&
			 hotspot_find_unloads(m, jvm);
	}
	if (found)
		err = self->host->unwinder->process_slab(self->in, process, jvm->words,
							 HOTSPOT_WORDS);
	if (hotspot_memory_may_pass(hotspot_memory_error(m)))
		return -EAGAIN;
	if (!jvm->nheaps) /* while a JVM starts, its lists may be incomplete */
		jvm->read = false;
	jvm->tries++;
	if (lists == HOTSPOT_LISTS_STRANGE && jvm->tries == TRIES)
		fusee_log(self, FUSEE_WARNING,
			  "Java's methods are not named: a JVM lays out its lists otherwise");
	return err;
}

int hotspot_claim_heaps(const struct fusee_self *self, uint64_t process, struct hotspot_jvm *jvm)
{
	uint64_t now = fusee_now(CLOCK_MONOTONIC);
	int err;

	if (!jvm->known || now < jvm->next_ns || jvm->tries >= TRIES)
		return 0;
	/* The first is when the library is mapped: the next, for code that ran, may come at once.
	 */
	jvm->next_ns = now + (uint64_t)jvm->tries * PAUSE_NS;
	if (!jvm->memory)
		jvm->memory = hotspot_memory_new(self->host->unwinder, process, MOST_BLOCKS);
	if (!jvm->memory)
		return -ENOMEM;
	err = try_claim(self, process, jvm);
	if (err == -EAGAIN)
		return 0;
	hotspot_memory_free(jvm->memory);
	jvm->memory = NULL;
	return err;
}
