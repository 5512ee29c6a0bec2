/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinct byte strings as dense ids, in the order of their first coming: interned strings, stacks,
 * locations. Id 0 is the empty one. A key's bytes never move and live as long as the dict. Keys
 * that are structs must have no padding that is not zeroed.
 */
#ifndef BASE_DICT_H
#define BASE_DICT_H

#include <stddef.h>
#include <stdint.h>

#define DICT_NONE UINT32_MAX

struct dict_entry {
	const void *key; /* 8-byte aligned */
	uint32_t len, hash;
};

struct dict {
	struct dict_entry *entries; /* by id; n of them */
	uint32_t n, cap;
	uint32_t *slots; /* id + 1, 0 free; nslots a power of two */
	uint32_t nslots;
	char *chunk; /* arena: newest chunk, linked through its first word */
	size_t chunk_left;
	char *chunk_at;
	size_t bytes; /* memory held by keys */
};

int dict_init(struct dict *);                                         /* 0 or -ENOMEM: it is {0} */
void dict_fini(struct dict *);                                        /* {0} is fine too */
uint32_t dict_add(struct dict *, const void *key, size_t len);        /* id; DICT_NONE: no memory */
uint32_t dict_find(const struct dict *, const void *key, size_t len); /* DICT_NONE: not there */
uint32_t dict_str(struct dict *, const char *); /* dict_add without the NUL; NULL: 0 */
#endif
