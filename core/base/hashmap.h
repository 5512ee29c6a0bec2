/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from 64-bit keys to pointers. {0} is an empty map. Values are borrowed, never NULL. */
#ifndef BASE_HASHMAP_H
#define BASE_HASHMAP_H

#include <stdint.h>

struct hashmap_slot {
	uint64_t key;
	void *value; /* NULL: free */
};

struct hashmap {
	struct hashmap_slot *slots;
	uint64_t n, nslots; /* nslots: a power of two */
};

void hashmap_fini(struct hashmap *);                     /* frees the map, not the values */
void hashmap_fini_free(struct hashmap *);                /* calls free() for each value too */
void *hashmap_get(const struct hashmap *, uint64_t key); /* NULL: the map lacks the key */
int hashmap_put(struct hashmap *, uint64_t key, void *); /* replaces; 0 or -ENOMEM */
void *hashmap_del(struct hashmap *, uint64_t key);       /* the removed value; NULL: none */
/* Calls each() for every entry, in no order. each() must not change the map. */
void hashmap_each(const struct hashmap *, void (*each)(void *arg, uint64_t key, void *value),
		  void *arg);
#endif
