/* SPDX-License-Identifier: Apache-2.0 */
#include "base/guess.h"

#include <string.h>

#define MAX_WORD 63u

static uint32_t min_of(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t guess_distance(const char *a, const char *b)
{
	uint32_t rows[3][MAX_WORD + 1], *before = rows[0], *last = rows[1], *now = rows[2], *spare;
	size_t na = strlen(a), nb = strlen(b);

	if (na > MAX_WORD || nb > MAX_WORD)
		return UINT32_MAX;
	memset(rows, 0, sizeof(rows));
	for (uint32_t j = 0; j <= nb; j++)
		last[j] = j;
	for (uint32_t i = 1; i <= na; i++) {
		now[0] = i;
		for (uint32_t j = 1; j <= nb; j++) {
			now[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
			now[j] = min_of(now[j], min_of(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = min_of(now[j], before[j - 2] + 1);
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[nb];
}

void guess_offer(struct guess *g, const char *candidate)
{
	uint32_t d = guess_distance(g->word, candidate);
	uint32_t max = strlen(g->word) < 4 ? 1 : 2;

	if (d <= max && (!g->best || d < g->distance)) {
		g->best = candidate;
		g->distance = d;
	}
}
