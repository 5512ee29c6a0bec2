/* SPDX-License-Identifier: Apache-2.0 */
#include "read_internal.h"

static void unpack(const uint8_t *p, unsigned int bits, uint32_t *to, uint64_t n)
{
	if (bits == 1) {
		for (uint64_t i = 0; i < n; i++)
			to[i] = p[i / 8] >> (i % 8) & 1;
	} else if (bits == 8) {
		for (uint64_t i = 0; i < n; i++)
			to[i] = p[i];
	} else if (bits == 16) {
		for (uint64_t i = 0; i < n; i++)
			to[i] = p[2 * i] | (uint32_t)p[2 * i + 1] << 8;
	} else {
		for (uint64_t i = 0; i < n; i++, p += 4)
			to[i] = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				(uint32_t)p[3] << 24;
	}
}

/* Groups of 8 values. The very last group may have values after the n-th: the writer fills it with
 * 0. */
static uint64_t get_literals(struct pq_in *in, unsigned int bits, uint64_t groups, uint32_t *to,
			     uint64_t n)
{
	const uint8_t *p = groups <= (n + 7) / 8 ? pq_get_bytes(in, groups * bits) : NULL;
	uint64_t count = groups * 8 < n ? groups * 8 : n;

	if (p)
		unpack(p, bits, to, count);
	else
		in->bad = true;
	return count;
}

void pq_get_hybrid(struct pq_in *in, unsigned int bits, uint32_t *to, uint64_t n)
{
	while (n && !in->bad) {
		uint64_t head = pq_get_varint(in), count = head >> 1;

		if (!count) {
			in->bad = true;
		} else if (head & 1) {
			count = get_literals(in, bits, count, to, n);
		} else {
			uint32_t v = (uint32_t)pq_get_number(in, (bits + 7) / 8);

			if (count > n || (bits == 1 && v > 1))
				in->bad = true;
			for (uint64_t i = 0; !in->bad && i < count; i++)
				to[i] = v;
		}
		if (in->bad)
			return;
		to += count;
		n -= count;
	}
}

void pq_get_numbers(struct pq_in *in, uint32_t type, int64_t *to, uint64_t n)
{
	unsigned int size = type == FUSEE_PARQUET_INT32 ? 4 : 8;

	if (n > (uint64_t)(in->end - in->at) / size)
		in->bad = true;
	for (uint64_t i = 0; !in->bad && i < n; i++) {
		uint64_t v = pq_get_number(in, size);

		to[i] = size == 4 ? (int32_t)(uint32_t)v : (int64_t)v;
	}
}

void pq_get_texts(struct pq_in *in, struct fusee_str *to, uint64_t n)
{
	for (uint64_t i = 0; !in->bad && i < n; i++) {
		uint64_t len = pq_get_number(in, 4);
		const uint8_t *p = pq_get_bytes(in, len);

		to[i] = (struct fusee_str){(const char *)p, p ? len : 0};
		if (!p || len > FUSEE_PARQUET_MAX_TEXT || !pq_is_utf8(to[i]))
			in->bad = true;
	}
}

static uint64_t get_zigzag(struct pq_in *in)
{
	uint64_t v = pq_get_varint(in);

	return v >> 1 ^ -(v & 1);
}

/* Adds up n differences of `bits` bits, each `min` more: *last becomes each number in turn. */
static void get_packed(struct pq_in *in, unsigned int bits, uint64_t min, uint64_t *last,
		       int64_t *to, uint64_t n)
{
	const uint8_t *p = pq_get_bytes(in, bits * PQ_DELTA_VALUES / 8);
	uint64_t mask = bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;
	unsigned __int128 rest = 0;
	unsigned int have = 0;

	for (uint64_t i = 0; p && i < n; i++) {
		for (; have < bits; have += 8)
			rest |= (unsigned __int128)*p++ << have;
		*last += min + ((uint64_t)rest & mask);
		to[i] = (int64_t)*last;
		rest >>= bits;
		have -= bits;
	}
}

/* The numbers of a block, at most n. Their count. */
static uint64_t get_block(struct pq_in *in, uint64_t *last, int64_t *to, uint64_t n)
{
	uint64_t min = get_zigzag(in), done = 0;
	const uint8_t *bits = pq_get_bytes(in, PQ_DELTA_MINI);

	for (uint32_t k = 0; bits && k < PQ_DELTA_MINI; k++) {
		uint64_t rest = n - done, part = rest < PQ_DELTA_VALUES ? rest : PQ_DELTA_VALUES;

		if (bits[k] > 64 || (!part && bits[k]))
			in->bad = true;
		if (in->bad)
			return done;
		get_packed(in, bits[k], min, last, to + done, part);
		done += part;
	}
	return done;
}

void pq_get_delta(struct pq_in *in, int64_t *to, uint64_t n)
{
	uint64_t last, done = 1;

	if (pq_get_varint(in) != PQ_DELTA_BLOCK || pq_get_varint(in) != PQ_DELTA_MINI ||
	    pq_get_varint(in) != n)
		in->bad = true;
	last = get_zigzag(in);
	if (n)
		to[0] = (int64_t)last;
	while (!in->bad && done < n)
		done += get_block(in, &last, to + done, n - done);
}
