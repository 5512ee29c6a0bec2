/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

unsigned int pq_code_size(uint32_t n)
{
	return n <= 1u << 8 ? 1 : n <= 1u << 16 ? 2 : 4;
}

/* A group of values, packed: n is a multiple of 8. */
static void put_literals(struct fusee_bytes *to, const uint32_t *values, uint64_t n,
			 unsigned int bits)
{
	uint64_t groups = (n + 7) / 8;

	if (!n)
		return;
	fusee_bytes_varint(to, groups << 1 | 1);
	for (uint64_t i = 0; i < groups * 8; i += bits == 1 ? 8 : 1) {
		uint8_t packed = 0;

		if (bits != 1) {
			fusee_bytes_number(to, i < n ? values[i] : 0, bits / 8);
			continue;
		}
		for (uint64_t k = 0; k < 8 && i + k < n; k++)
			packed |= (uint8_t)(values[i + k] << k);
		fusee_bytes_byte(to, packed);
	}
}

static uint64_t run_length(const uint32_t *values, uint64_t n)
{
	uint64_t k = 1;

	while (k < n && values[k] == *values)
		k++;
	return k;
}

/* Runs of 8 and more are written as runs. Other values are written in groups of 8. Only the very
 * last group may have fewer values, so a run first fills an incomplete group before it.
 */
void pq_put_hybrid(struct fusee_bytes *to, const uint32_t *values, uint64_t n, unsigned int bits)
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
		fusee_bytes_varint(to, run << 1);
		fusee_bytes_number(to, values[i], (bits + 7) / 8);
		i += run;
		begin = i;
	}
	put_literals(to, values + begin, n - begin, bits);
}

void pq_put_value(struct fusee_bytes *to, const struct pq_dictionary *d, uint32_t type,
		  uint32_t code)
{
	struct fusee_str s;

	if (type != FUSEE_PARQUET_TEXT) {
		fusee_bytes_number(to, d->values[code], type == FUSEE_PARQUET_INT32 ? 4 : 8);
		return;
	}
	s = pq_dictionary_text_at(d, code);
	fusee_bytes_number(to, s.len, 4);
	fusee_bytes_add(to, s.p, s.len);
}

void pq_put_plain(struct fusee_bytes *to, const struct pq_dictionary *d, uint32_t type,
		  const uint32_t *codes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		pq_put_value(to, d, type, codes ? codes[i] : (uint32_t)i);
}

static uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ (uint64_t)((int64_t)v >> 63);
}

static unsigned int width_of(const uint64_t *values, uint64_t n)
{
	uint64_t all = 0;

	for (uint64_t i = 0; i < n; i++)
		all |= values[i];
	return all ? 64 - (unsigned int)__builtin_clzll(all) : 0;
}

/* PQ_DELTA_VALUES values of `bits` bits, lowest first. */
static void put_packed(struct fusee_bytes *to, const uint64_t *values, unsigned int bits)
{
	unsigned __int128 rest = 0;
	unsigned int have = 0;

	for (uint32_t i = 0; i < PQ_DELTA_VALUES; i++) {
		rest |= (unsigned __int128)values[i] << have;
		for (have += bits; have >= 8; have -= 8, rest >>= 8)
			fusee_bytes_byte(to, (uint8_t)rest);
	}
}

/* Writes a block of n > 0 deltas, as differences from the smallest. */
static void put_block(struct fusee_bytes *to, uint64_t *deltas, uint64_t n)
{
	unsigned int bits[PQ_DELTA_MINI] = {0};
	int64_t min = (int64_t)deltas[0];

	for (uint64_t i = 1; i < n; i++)
		min = (int64_t)deltas[i] < min ? (int64_t)deltas[i] : min;
	for (uint64_t i = 0; i < PQ_DELTA_BLOCK; i++)
		deltas[i] = i < n ? deltas[i] - (uint64_t)min : 0;
	fusee_bytes_varint(to, zigzag((uint64_t)min));
	for (uint32_t k = 0; k < PQ_DELTA_MINI; k++) {
		bits[k] = width_of(deltas + k * PQ_DELTA_VALUES, PQ_DELTA_VALUES);
		fusee_bytes_byte(to, (uint8_t)bits[k]);
	}
	for (uint32_t k = 0; k < PQ_DELTA_MINI; k++)
		if (bits[k])
			put_packed(to, deltas + k * PQ_DELTA_VALUES, bits[k]);
}

void pq_put_delta(struct fusee_bytes *to, const struct pq_dictionary *d, const uint32_t *codes,
		  uint64_t n)
{
	uint64_t deltas[PQ_DELTA_BLOCK], k = 0;

	fusee_bytes_varint(to, PQ_DELTA_BLOCK);
	fusee_bytes_varint(to, PQ_DELTA_MINI);
	fusee_bytes_varint(to, n);
	fusee_bytes_varint(to, zigzag(n ? d->values[codes[0]] : 0));
	for (uint64_t i = 1; i < n; i++) {
		deltas[k++] = d->values[codes[i]] - d->values[codes[i - 1]];
		if (k == PQ_DELTA_BLOCK || i + 1 == n) {
			put_block(to, deltas, k);
			k = 0;
		}
	}
}
