/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dictionary: distinct byte strings as consecutive ids, in the order of their first addition. It
 * interns strings, stacks and locations. Id 0 is the empty string. A key's bytes are copied, never
 * move and exist as long as the dict. Structs as keys must have zeroed padding.
 */
#ifndef BASE_DICT_H
#define BASE_DICT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slots.h"

#define DICT_NONE UINT32_MAX /* no id */

struct dict_entry {
	const void *key; /* aligned to 8 bytes */
	uint32_t len, hash;
};

struct dict {
	struct dict_entry *entries; /* by id */
	uint32_t n;                 /* of entries */
	size_t cap;                 /* the same */
	struct slots slots;         /* by the hashes of the keys */
	char *chunk;                /* newest chunk of keys; its first word points to the next */
	size_t chunk_free;          /* bytes at chunk_at */
	char *chunk_at;
	size_t bytes;        /* of all keys */
	struct arena *arena; /* that has its memory; NULL: the heap has it */
};

int dict_init(struct dict *);  /* 0; -ENOMEM: the dict is {0} */
void dict_fini(struct dict *); /* {0} is valid */
/* The same, but the memory of the dict is the arena's, which frees it. */
int dict_init_in(struct dict *, struct arena *);
/* The key's id; a new key gets a new id. DICT_NONE: no memory, or no id is free. */
uint32_t dict_add(struct dict *, const void *key, size_t len);
/* The key's id. DICT_NONE: the dict lacks the key. */
uint32_t dict_find(const struct dict *, const void *key, size_t len);
/* dict_add() of a string without its NUL. NULL: id 0. */
uint32_t dict_str(struct dict *, const char *);
#endif
