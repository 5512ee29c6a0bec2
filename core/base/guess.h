/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the word that a misspelt word was meant to be: "did you mean 'every'?" */
#ifndef BASE_GUESS_H
#define BASE_GUESS_H

#include <stdint.h>

/* The number of letters that are inserted, omitted, changed or swapped with their neighbour
 * (optimal string alignment). UINT32_MAX: a word has more than 63 bytes. */
uint32_t guess_distance(const char *, const char *);

/* Start with {.word = misspelt word}, offer every candidate, then read best or print GUESS_HINT.
 */
struct guess {
	const char *word;
	const char *best; /* borrowed from the candidates; NULL: none is near enough */
	uint32_t distance;
};
void guess_offer(struct guess *, const char *candidate); /* the candidate is borrowed */
/* The end of a sentence about the word: " (did you mean 'every'?)" or, if none is near enough,
 * `otherwise`: for printf("no option '%s'" GUESS_HINT, g.word, GUESS_WORDS(g, "")). */
#define GUESS_HINT "%s%s%s"
#define GUESS_WORDS(g, otherwise) \
	(g).best ? " (did you mean '" : (otherwise), (g).best ? (g).best : "", (g).best ? "'?)" : ""
#endif
