/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of pointers by 64-bit key. {0} is an empty one. Values are borrowed, never NULL. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdint.h>

struct table_slot {
	uint64_t key;
	void *value; /* NULL: free */
};

struct table {
	struct table_slot *slots;
	uint64_t n, nslots; /* nslots: a power of two */
};

void table_fini(struct table *);                     /* the table, not the values */
void table_fini_free(struct table *);                /* and the values, with free() */
void *table_get(const struct table *, uint64_t key); /* NULL: not there */
int table_put(struct table *, uint64_t key, void *); /* replaces; 0 or -ENOMEM */
void *table_del(struct table *, uint64_t key);       /* what stood there, or NULL */
void table_each(const struct table *, void (*each)(void *arg, uint64_t key, void *value),
		void *arg);
#endif
