/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One perf map: lines "START SIZE NAME" of hexadecimal numbers, of which later ones win over
 * earlier ones that they overlap. Foreign bytes, in bounded memory: what doesn't fit or makes no
 * sense is counted and left out. For one thread.
 */
#ifndef PERFMAP_MAP_H
#define PERFMAP_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_LINE 4096u         /* longer lines are cut: the rest of the name is left out */
#define MAP_LARGEST (1u << 30) /* bytes of code of one entry */
#define MAP_PENDING 65536u     /* commit when as many entries wait */

enum map_fault {
	MAP_NO_NUMBERS, /* refused: no two hexadecimal numbers and a name */
	MAP_BAD_RANGE,  /* refused: empty, larger than MAP_LARGEST, or wraps */
	MAP_FULL,       /* refused: no memory left for it */
	MAP_CUT,        /* the name was longer than MAP_LINE */
	MAP_FAULTS,
};

/* Which runtime wrote it, as far as it matters for stepping. */
enum map_kind { MAP_FRAMES, MAP_PYTHON, MAP_ERLANG };

struct map;

struct map *map_new(uint64_t max_bytes); /* of memory; NULL: no memory */
void map_free(struct map *);             /* NULL is fine */
/* The next bytes of the file. The last line counts when its end has come. */
void map_feed(struct map *, const char *, size_t len);
/* Entries that were fed and not committed. */
uint32_t map_pending(const struct map *);
/* Would a commit put another name over a named place? */
bool map_replaces(struct map *);
/* What was fed counts from this generation of the process's code on; what it replaces can still be
 * looked up by the generations before. */
void map_commit(struct map *, uint32_t generation);
/* What had this address in that generation; an entry that came later where nothing else was known.
 * The name is not terminated and lives until the next call that is not map_lookup(). */
bool map_lookup(const struct map *, uint64_t addr, uint32_t generation, const char **name,
		uint32_t *len);
/* Has it entries in [lo, hi)? *kind: of the first one that tells. */
bool map_covers(const struct map *, uint64_t lo, uint64_t hi, enum map_kind *kind);
const uint64_t *map_faults(const struct map *); /* MAP_FAULTS of them: lines so far */
uint64_t map_bytes(const struct map *);         /* of memory */
uint32_t map_entries(const struct map *);
#endif
