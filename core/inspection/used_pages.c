// SPDX-License-Identifier: Apache-2.0
#include "inspection/used_pages.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/unwinder.bpf.h>

static size_t bytes_of_bits(uint32_t n)
{
	return ((size_t)n + 7) / 8;
}

size_t used_pages_bytes(uint32_t n)
{
	return sizeof(struct used_pages) + 2 * bytes_of_bits(n);
}

bool used_pages_are_valid(const struct used_pages *u, size_t bytes, uint32_t n)
{
	size_t len = bytes_of_bits(n);

	if (!n || n > USED_PAGES_MOST || bytes != used_pages_bytes(n) || u->n != n)
		return false;
	/* no bit behind the last page */
	return !(n % 8) || !((u->bits[len - 1] | u->bits[2 * len - 1]) >> n % 8);
}

bool used_pages_have(const struct used_pages *u, uint32_t page)
{
	size_t len = bytes_of_bits(u->n);

	return page < u->n && (u->bits[page / 8] | u->bits[len + page / 8]) >> page % 8 & 1;
}

uint32_t used_pages_count(const struct used_pages *u)
{
	uint32_t n = 0;

	for (uint32_t page = 0; page < u->n; page++)
		n += used_pages_have(u, page);
	return n;
}

void used_pages_next(struct used_pages *ret, uint32_t n, const uint8_t *bits,
		     const struct used_pages *older)
{
	size_t len = bytes_of_bits(n);

	ret->n = n;
	memcpy(ret->bits, bits, len);
	if (older && older->n == n)
		memcpy(ret->bits + len, older->bits, len);
	else
		memset(ret->bits + len, 0, len);
}

/* ---- a table that is made again ---- */

#define SAMPLE_WORDS 8u /* so many in a row are found again */
#define SAMPLES 3u      /* of a page */
#define FAR 65536u      /* words that are looked through for a sample, three times at most */

struct carrying {
	const uint32_t *before, *words;
	uint64_t nbefore, n;
	uint64_t shift; /* words that are new before this place */
	uint64_t most;  /* .. in all */
};

static bool is_uniform(const uint32_t *w)
{
	for (uint32_t i = 1; i < SAMPLE_WORDS; i++)
		if (w[i] != w[0])
			return false;
	return true;
}

/* Are the words from `at` on found again, behind so many new words? Then that is `shift`. */
static bool find_between(struct carrying *c, uint64_t at, uint64_t from, uint64_t to)
{
	const uint32_t *sample = c->before + at;

	for (uint64_t shift = from; shift <= to && shift <= c->most; shift++) {
		const uint32_t *w = c->words + at + shift;

		if (*w != *sample || memcmp(w, sample, SAMPLE_WORDS * sizeof(*w)) != 0)
			continue;
		c->shift = shift;
		return true;
	}
	return false;
}

/* What is new lies near what was found last, or is spread evenly. */
static bool find_again(struct carrying *c, uint64_t at)
{
	uint64_t even = (uint64_t)((double)c->most * (double)at / (double)c->nbefore);
	uint64_t from = even > FAR ? even - FAR : 0;

	if (at + SAMPLE_WORDS > c->nbefore || is_uniform(c->before + at))
		return false;
	return find_between(c, at, c->shift, c->shift + FAR) ||
	       find_between(c, at, from > c->shift ? from : c->shift, even + FAR);
}

/* Marks where the page is now. Pages that have changed, as those of an index, are where they were
 * behind what is new before them. */
static void carry_page(struct carrying *c, uint64_t page, struct used_pages *ret)
{
	uint64_t at = page << FUSEE_PAGE_SHIFT, last;

	for (uint32_t i = 0; i < SAMPLES; i++)
		if (find_again(c, at + i * (FUSEE_PAGE_WORDS - SAMPLE_WORDS) / (SAMPLES - 1)))
			break;
	at += c->shift;
	last = at + FUSEE_PAGE_WORDS - 1 < c->n ? at + FUSEE_PAGE_WORDS - 1 : c->n - 1;
	ret->bits[(at >> FUSEE_PAGE_SHIFT) / 8] |= (uint8_t)(1u << (at >> FUSEE_PAGE_SHIFT) % 8);
	ret->bits[(last >> FUSEE_PAGE_SHIFT) / 8] |= (uint8_t)(1u
							       << (last >> FUSEE_PAGE_SHIFT) % 8);
}

struct used_pages *used_pages_carry(const uint32_t *before, uint64_t nbefore, const uint8_t *bits,
				    const uint32_t *words, uint64_t n)
{
	struct carrying c = {
		.before = before, .words = words, .nbefore = nbefore, .n = n, .most = n - nbefore};
	uint64_t npages = (n + FUSEE_PAGE_WORDS - 1) >> FUSEE_PAGE_SHIFT;
	struct used_pages *ret;
	bool any = false;

	if (n < nbefore || !npages || npages > USED_PAGES_MOST)
		return NULL;
	ret = calloc(1, used_pages_bytes((uint32_t)npages));
	if (!ret)
		return NULL;
	ret->n = (uint32_t)npages;
	for (uint64_t page = 0; page << FUSEE_PAGE_SHIFT < nbefore; page++) {
		if (!(bits[page / 8] >> page % 8 & 1))
			continue;
		carry_page(&c, page, ret);
		any = true;
	}
	if (any)
		return ret;
	free(ret);
	return NULL;
}

void used_pages_key(const struct inspection *i, const char *unwinder, uint8_t key[32])
{
	static const char what[] = "used pages";
	SHA256_CTX h;

	SHA256_Init(&h);
	SHA256_Update(&h, what, sizeof(what));
	SHA256_Update(&h, i->stored, sizeof(i->stored));
	SHA256_Update(&h, unwinder, strlen(unwinder));
	SHA256_Final(key, &h);
}
