/* SPDX-License-Identifier: Apache-2.0 */
/* A map from 64-bit numbers to 32-bit values, for merging. {0} is empty. */
#ifndef PARQUET_NUMBERS_H
#define PARQUET_NUMBERS_H

#include <stdint.h>

#include <fusee/helpers.h>

#define NUMBERS_OF_NONE 0xcbf29ce484222325ull

struct numbers {
	uint64_t *keys;
	uint32_t *values;         /* one more than the value; 0: the place is free */
	uint64_t nslots, n, seed; /* nslots: a power of 2 */
};

/* Sets *value to the number's value; a new number gets the given value. 1: it is new; 0;
 * -ENOMEM. */
int numbers_add(struct numbers *, uint64_t key, uint32_t *value);
/* Sets the value of a number that is in the map; not UINT32_MAX. */
void numbers_set(struct numbers *, uint64_t key, uint32_t value);
/* UINT32_MAX: the number is not in the map. */
uint32_t numbers_get(const struct numbers *, uint64_t key);
void numbers_fini(struct numbers *);
/* A hash of a sequence of texts: `before` is that of the earlier texts (NUMBERS_OF_NONE: none).
 * FNV-1a; each text ends with a value that is not a byte. */
uint64_t numbers_of_text(uint64_t before, struct fusee_str);
#endif
