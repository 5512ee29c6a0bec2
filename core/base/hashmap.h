/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of pointers by 64-bit key. {0} is an empty one. Values are borrowed, never NULL. */
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

void hashmap_fini(struct hashmap *);                     /* the table, not the values */
void hashmap_fini_free(struct hashmap *);                /* and the values, with free() */
void *hashmap_get(const struct hashmap *, uint64_t key); /* NULL: not there */
int hashmap_put(struct hashmap *, uint64_t key, void *); /* replaces; 0 or -ENOMEM */
void *hashmap_del(struct hashmap *, uint64_t key);       /* what stood there, or NULL */
void hashmap_each(const struct hashmap *, void (*each)(void *arg, uint64_t key, void *value),
		  void *arg);
#endif
