/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean 'every'?" */
#ifndef BASE_GUESS_H
#define BASE_GUESS_H

#include <stdint.h>

/* How many letters differ: inserted, left out, changed, swapped with the next one (optimal string
 * alignment). Words of more than 63 bytes are far from everything: UINT32_MAX. */
uint32_t guess_distance(const char *, const char *);

/* The best guess so far among the words that were offered. {word} to begin. */
struct guess {
	const char *word;
	const char *best; /* NULL: none is near */
	uint32_t distance;
};
void guess_offer(struct guess *, const char *candidate); /* the candidate is borrowed */
#endif
