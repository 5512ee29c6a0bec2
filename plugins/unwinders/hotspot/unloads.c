/* SPDX-License-Identifier: Apache-2.0 */
/* The JVM keeps counters for jstat, as a table with a version, unless it has -XX:-UsePerfData. */
#include "unloads.h"

#include "fields.h"
#include "memory.h"
#include "words.h"

#define MAGIC 0xc0c0fecau
#define VERSION 2 /* major */
#define MOST_COUNTERS 1024u
#define MOST_BYTES (1u << 20) /* of the table */

struct prologue {
	uint32_t magic;
	uint8_t order, major, minor, accessible;
	uint32_t used, overflow;
	uint64_t modified;
	uint32_t first, n;
};

struct counter {
	uint32_t bytes, name, vector;
	uint8_t type, flags, units, variability;
	uint32_t data;
};

static void put(uint32_t *words, uint64_t v)
{
	words[0] = (uint32_t)v;
	words[1] = (uint32_t)(v >> 32);
}

/* The address of the counter of this name, of 8 bytes. 0: there is none. */
static uint64_t find_counter(struct hotspot_memory *m, uint64_t table, const char *name)
{
	struct prologue p;
	uint64_t at = 0;

	if (!hotspot_memory_read(m, table, &p, sizeof(p)) || p.magic != MAGIC ||
	    p.major != VERSION || p.order != 1 || p.used > MOST_BYTES)
		return 0;
	at = p.first;
	for (uint32_t i = 0; i < p.n && i < MOST_COUNTERS; i++) {
		struct counter c;
		char text[48];

		if (at + sizeof(c) > p.used || !hotspot_memory_read(m, table + at, &c, sizeof(c)) ||
		    c.bytes < sizeof(c) || c.bytes > p.used - at)
			return 0;
		hotspot_memory_text(m, table + at + c.name, text, sizeof(text));
		if (!strcmp(text, name))
			return c.type == 'J' && !c.vector && !((at + c.data) & 7) &&
					       c.data <= c.bytes - 8
				       ? table + at + c.data
				       : 0;
		at += c.bytes;
	}
	return 0;
}

bool hotspot_find_unloads(struct hotspot_memory *m, struct hotspot_jvm *jvm)
{
	uint64_t prologue = hotspot_address(jvm->words + HOTSPOT_PERF_MEMORY), table, count;
	uint32_t redefined = jvm->table[HOTSPOT_TABLE_REDEFINED];

	if (!prologue || (!redefined && !hotspot_address(jvm->words + HOTSPOT_MAY_REDEFINE)) ||
	    !hotspot_memory_read(m, prologue, &table, sizeof(table)) || !table || table & 7)
		return false;
	count = find_counter(m, table, "java.cls.unloadedClasses");
	if (!count)
		return false;
	put(jvm->words + HOTSPOT_REDEFINED, redefined ? jvm->bias + redefined : 0);
	put(jvm->words + HOTSPOT_UNLOADED, count);
	return true;
}
