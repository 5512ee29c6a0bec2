// SPDX-License-Identifier: Apache-2.0
#include "inspection/used_pages.h"

#include <openssl/sha.h>
#include <string.h>

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
