/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

unsigned int pq_code_size(uint32_t n)
{
	return n <= 1u << 8 ? 1 : n <= 1u << 16 ? 2 : 4;
}

/* A group of values, packed: n is a multiple of 8. */
static void put_literals(struct pq_bytes *to, const uint32_t *values, uint64_t n, unsigned int bits)
{
	uint64_t groups = (n + 7) / 8;

	if (!n)
		return;
	pq_put_varint(to, groups << 1 | 1);
	for (uint64_t i = 0; i < groups * 8; i += bits == 1 ? 8 : 1) {
		uint8_t packed = 0;

		if (bits != 1) {
			pq_put_number(to, i < n ? values[i] : 0, bits / 8);
			continue;
		}
		for (uint64_t k = 0; k < 8 && i + k < n; k++)
			packed |= (uint8_t)(values[i + k] << k);
		pq_put_byte(to, packed);
	}
}

static uint64_t run_length(const uint32_t *values, uint64_t n)
{
	uint64_t k = 1;

	while (k < n && values[k] == *values)
		k++;
	return k;
}

/* Runs of 8 and more are written as runs. The others stand in groups of 8, of which only the last
 * of all may have fewer values, so a run gives its first values to an incomplete group before it.
 */
void pq_put_hybrid(struct pq_bytes *to, const uint32_t *values, uint64_t n, unsigned int bits)
{
	uint64_t begin = 0, i = 0;

	while (i < n) {
		uint64_t run = run_length(values + i, n - i), open = (i - begin) % 8,
			 fill = open ? 8 - open : 0;

		if (run < 8 + fill) {
			i += run;
			continue;
		}
		i += fill;
		run -= fill;
		put_literals(to, values + begin, i - begin, bits);
		pq_put_varint(to, run << 1);
		pq_put_number(to, values[i], (bits + 7) / 8);
		i += run;
		begin = i;
	}
	put_literals(to, values + begin, n - begin, bits);
}

void pq_put_value(struct pq_bytes *to, const struct pq_dictionary *d, uint32_t type, uint32_t code)
{
	struct fusee_str s;

	if (type != FUSEE_PARQUET_TEXT) {
		pq_put_number(to, d->values[code], type == FUSEE_PARQUET_INT32 ? 4 : 8);
		return;
	}
	s = pq_dictionary_text_at(d, code);
	pq_put_number(to, s.len, 4);
	pq_put(to, s.p, s.len);
}

void pq_put_plain(struct pq_bytes *to, const struct pq_dictionary *d, uint32_t type,
		  const uint32_t *codes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		pq_put_value(to, d, type, codes ? codes[i] : (uint32_t)i);
}
