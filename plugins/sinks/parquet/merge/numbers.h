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

/* *value: the number's, which is the given one if the number is new. 1: it is new; 0; -ENOMEM. */
int numbers_add(struct numbers *, uint64_t key, uint32_t *value);
/* Of a number that is there: sets its value. UINT32_MAX is none. */
void numbers_set(struct numbers *, uint64_t key, uint32_t value);
/* UINT32_MAX: the number is not there. */
uint32_t numbers_get(const struct numbers *, uint64_t key);
void numbers_fini(struct numbers *);
/* A number for texts that follow each other: for those before (NUMBERS_OF_NONE: none) and this.
 * FNV-1a, with a unit that is no byte behind each. */
uint64_t numbers_of_text(uint64_t before, struct fusee_str);
#endif
