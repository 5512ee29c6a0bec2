/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One perf map: lines "START SIZE NAME" with hexadecimal numbers. A later line replaces what it
 * overlaps of earlier lines. A target wrote the bytes, and the memory is bounded: lines that do
 * not fit or are not valid are counted and ignored. For one thread.
 */
#ifndef PERFMAP_MAP_H
#define PERFMAP_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fusee/codemap.h>

#define MAP_LINE 4096u /* bytes; the name of a longer line is truncated */
#define MAP_PENDING FUSEE_CODEMAP_PENDING

enum map_fault {
	MAP_NO_NUMBERS, /* refused: no two hexadecimal numbers and a name */
	MAP_BAD_RANGE,  /* refused: empty, larger than FUSEE_CODEMAP_LARGEST, or wraps */
	MAP_FULL,       /* refused: it does not fit into memory */
	MAP_TRUNCATED,  /* the line was longer than MAP_LINE */
	MAP_FAULTS,
};

struct map;

/* max_bytes: of memory. The caller frees it; NULL: no memory. */
struct map *map_new(uint64_t max_bytes);
void map_free(struct map *); /* NULL is fine */
/* Reads the next bytes of the file. A line counts once its end was read. */
void map_feed(struct map *, const char *, size_t len);
/* The number of entries that are not committed. */
uint32_t map_pending(const struct map *);
/* Whether a commit would give an address another name. */
bool map_replaces(struct map *);
/* Makes the new entries valid from this generation of the process's code on. Earlier generations
 * still find what they replace. */
void map_commit(struct map *, uint32_t generation);
/* Finds the name of an address in a generation; without one, the name of a later generation. *name
 * is not terminated, and valid until a call other than map_lookup(). */
bool map_lookup(const struct map *, uint64_t addr, uint32_t generation, struct fusee_str *name);
/* Whether there are entries in [lo, hi). *kind: of the first entries. */
bool map_covers(const struct map *, uint64_t lo, uint64_t hi, enum fusee_code_kind *kind);
const uint64_t *map_faults(const struct map *); /* lines so far, by enum map_fault */
uint64_t map_bytes(const struct map *);         /* memory in use */
/* Sets another limit. Memory in use beyond it is not freed; no line is added then. */
void map_limit(struct map *, uint64_t max_bytes);
uint32_t map_entries(const struct map *);
#endif
