// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void block_portably(uint32_t state[8], const unsigned char *p)
{
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, state, sizeof(s));
	/* Eight rounds at a time: the names move around instead of the values. */
#pragma GCC unroll 8
	for (int i = 0; i < 64; i++) {
		uint32_t *a = &s[-i & 7], *b = &s[(1 - i) & 7], *c = &s[(2 - i) & 7],
			 *d = &s[(3 - i) & 7];
		uint32_t e = s[(4 - i) & 7], f = s[(5 - i) & 7], g = s[(6 - i) & 7],
			 *h = &s[(7 - i) & 7];
		uint32_t t = *h + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & f) ^ (~e & g)) +
			     k[i] + w[i];

		*d += t;
		*h = t + (ror(*a, 2) ^ ror(*a, 13) ^ ror(*a, 22)) +
		     ((*a & *b) ^ (*a & *c) ^ (*b & *c));
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

#ifdef __x86_64__
static bool cpu_can(void)
{
	unsigned int a, b = 0, c = 0, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3))
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA;
}

/* The instructions keep the state as a, b, e, f and c, d, g, h, and do two rounds each. */
__attribute__((target("sha,sse4.1,ssse3"))) static void block_by_cpu(uint32_t state[8],
								     const unsigned char *p)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
	__m128i abcd = _mm_loadu_si128((const __m128i *)state);
	__m128i efgh = _mm_loadu_si128((const __m128i *)(state + 4));
	__m128i badc = _mm_shuffle_epi32(abcd, 0xb1), hgfe = _mm_shuffle_epi32(efgh, 0x1b);
	__m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
	__m128i abef_was = abef, cdgh_was = cdgh, w[4], wk;

	for (int i = 0; i < 4; i++)
		w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
	for (int i = 0; i < 16; i++) {
		__m128i *t = &w[i & 3], last = w[(i + 3) & 3];

		if (i >= 4)
			*t = _mm_sha256msg2_epu32(
				_mm_add_epi32(_mm_sha256msg1_epu32(*t, w[(i + 1) & 3]),
					      _mm_alignr_epi8(last, w[(i + 2) & 3], 4)),
				last);
		wk = _mm_add_epi32(*t, _mm_loadu_si128((const __m128i *)(k + 4 * i)));
		cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
		abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
	}
	abef = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_was), 0x1b);
	cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_was), 0xb1);
	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(abef, cdgh, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(cdgh, abef, 8));
}
#else
static bool cpu_can(void)
{
	return false;
}

static void block_by_cpu(uint32_t state[8], const unsigned char *p)
{
	block_portably(state, p);
}
#endif

static void block(struct sha256 *h, const unsigned char *p)
{
	if (h->by_cpu)
		block_by_cpu(h->state, p);
	else
		block_portably(h->state, p);
}

void sha256_init(struct sha256 *h)
{
	*h = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				       0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
			     .by_cpu = cpu_can()};
}

void sha256_add(struct sha256 *h, const void *from, size_t len)
{
	size_t have = h->len % 64;
	const unsigned char *p = from;

	h->len += len;
	if (have) {
		size_t n = len < 64 - have ? len : 64 - have;

		memcpy(h->block + have, p, n);
		if (have + n < 64)
			return;
		block(h, h->block);
		p += n;
		len -= n;
	}
	for (; len >= 64; p += 64, len -= 64)
		block(h, p);
	if (len)
		memcpy(h->block, p, len);
}

void sha256_end(struct sha256 *h, uint8_t digest[32])
{
	static const unsigned char pad[72] = {0x80};
	uint64_t bits = h->len * 8;
	unsigned char len[8];

	for (int i = 0; i < 8; i++)
		len[i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(h, pad, 1 + (119 - h->len % 64) % 64);
	sha256_add(h, len, sizeof(len));
	for (int i = 0; i < 32; i++)
		digest[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}
