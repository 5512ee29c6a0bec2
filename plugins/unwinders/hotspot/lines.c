/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <stdbool.h>

#define MOST_LINE (1u << 24)

/* tests/fuzz/planted builds this with a fault, a read of one byte too many, which the fuzzer must
 * find. */
#ifdef FUSEE_PLANTED_BUG
#define SLACK 1
#else
#define SLACK 0
#endif

struct reader {
	const unsigned char *table;
	uint32_t n, at, excess;
	bool over; /* the table has no further byte */
};

static uint32_t next_byte(struct reader *r)
{
	if (r->at < r->n + SLACK)
		return r->table[r->at++];
	r->over = true;
	return 0;
}

/* Decodes a packed number with its sign in the lowest bit. */
static uint32_t next_signed(struct reader *r)
{
	uint32_t sum = 0;

	for (int k = 0; k < 5; k++) {
		uint32_t b = next_byte(r);

		sum += (b - r->excess) << 6 * k;
		if (b < 192)
			break;
	}
	return sum >> 1 ^ (0u - (sum & 1));
}

/* Adds the differences of the next entry to *bci and *line. false: the table has ended. */
static bool next_entry(struct reader *r, uint32_t *bci, uint32_t *line)
{
	uint32_t b = next_byte(r);

	if (!b || r->over)
		return false;
	if (b == 0xff) {
		*bci += next_signed(r);
		*line += next_signed(r);
		return !r->over;
	}
	*bci += b >> 3;
	*line += b & 7;
	return true;
}

uint32_t hotspot_line(const unsigned char *table, uint32_t n, uint32_t excess, uint32_t bci,
		      uint32_t *first)
{
	struct reader r = {.table = table, .n = n, .excess = excess};
	uint32_t at = 0, line = 0, best = 0, best_at = 0;
	/* An entry behind bci was seen. Entries that a truncated table lacks are rarely nearer to
	 * bci then. */
	bool beyond = false;

	*first = 0;
	while (next_entry(&r, &at, &line) && line < MOST_LINE) {
		if (!*first || line < *first)
			*first = line;
		if (at <= bci && (!best || at >= best_at)) {
			best = line;
			best_at = at;
		}
		beyond |= at > bci;
	}
	return r.over && !beyond ? 0 : best;
}
