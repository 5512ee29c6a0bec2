/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bloom filters as the format has them: a text's hash selects a block of 8 words and a bit in each
 * of these. The size is a power of 2, which some readers require, with 8 to 16 bits for a value: of
 * other values 2.6 % to 0.1 % seem to be in it.
 */
#include "internal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define WORDS (PQ_FILTER_BLOCK / 4)

static const uint32_t salts[WORDS] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
				      0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

static uint64_t hash_of(struct fusee_str text)
{
	return XXH64(text.len ? text.p : "", text.len, 0);
}

/* The place of the hash's block. */
static uint64_t block_of(uint64_t hash, uint64_t n)
{
	return (hash >> 32) * (n / PQ_FILTER_BLOCK) >> 32;
}

/* The bit of word i, as a number of a byte's bit in the block: words have their lowest byte first.
 */
static uint32_t bit_of(uint64_t hash, uint32_t i)
{
	return 32 * i + ((uint32_t)hash * salts[i] >> 27);
}

static void put_union(struct pq_struct *parent, int field)
{
	struct pq_struct choice = pq_begin(parent, field), none = pq_begin(&choice, 1);

	pq_end(&none);
	pq_end(&choice);
}

static void put_header(struct fusee_bytes *to, uint64_t n)
{
	struct pq_struct s = pq_begin_element(to);

	pq_i32(&s, 1, (int32_t)n);
	put_union(&s, 2); /* split blocks */
	put_union(&s, 3); /* XXH64 */
	put_union(&s, 4); /* not compressed */
	pq_end(&s);
}

void pq_put_filter(struct fusee_bytes *to, const struct pq_dictionary *d)
{
	static const uint8_t empty[PQ_FILTER_BLOCK];
	uint64_t n = PQ_FILTER_BLOCK, at;

	while (n < d->n)
		n *= 2;
	put_header(to, n);
	at = to->len;
	for (uint64_t i = 0; i < n; i += PQ_FILTER_BLOCK)
		fusee_bytes_add(to, empty, sizeof(empty));
	for (uint32_t code = 0; !to->error && code < d->n; code++) {
		uint64_t hash = hash_of(pq_dictionary_text_at(d, code));
		char *block = to->p + at + PQ_FILTER_BLOCK * block_of(hash, n);

		for (uint32_t i = 0; i < WORDS; i++)
			block[bit_of(hash, i) / 8] |= (char)(1 << bit_of(hash, i) % 8);
	}
}

bool pq_filter_has(const uint8_t *blocks, uint64_t n, struct fusee_str text)
{
	uint64_t hash = hash_of(text);
	const uint8_t *block = blocks + PQ_FILTER_BLOCK * block_of(hash, n);

	for (uint32_t i = 0; i < WORDS; i++)
		if (!(block[bit_of(hash, i) / 8] >> bit_of(hash, i) % 8 & 1))
			return false;
	return true;
}
