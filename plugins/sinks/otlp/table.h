/* SPDX-License-Identifier: Apache-2.0 */
/* A table of a dictionary: distinct elements, each a byte string, with consecutive numbers in the
 * order of their first addition. Element 0 is empty. */
#ifndef OTLP_TABLE_H
#define OTLP_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <fusee/profile.h>

#include <fusee/proto.h>

struct table {
	struct table_element *elements;
	uint32_t n;
	uint64_t cap;
	uint32_t *slots;           /* hash table: number + 1; 0: free */
	uint32_t nslots;           /* a power of two */
	uint32_t field;            /* of each element */
	struct fusee_bytes fields; /* the elements in their order, as they are in the message */
};

int table_init(struct table *, uint32_t field); /* 0 or -ENOMEM */
void table_fini(struct table *);                /* {0} is valid */
/* The element's number; a new element gets a new number. 0 and *error = -ENOMEM: no memory. */
uint32_t table_add(struct table *, const void *, size_t len, int *error);
/* Valid until the next table_add(). */
struct fusee_str table_at(const struct table *, uint32_t number);
#endif
