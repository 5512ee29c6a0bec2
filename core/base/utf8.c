/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Table 3-7 of the Unicode standard: the second byte's range keeps out overlong forms, surrogates
 * and what lies beyond U+10FFFF. */
size_t utf8_char(const char *s, size_t len)
{
	const uint8_t *p = (const uint8_t *)s;
	uint8_t lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (len < n)
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Whether these eight bytes are ASCII. */
static bool is_ascii(const char *p)
{
	uint64_t bytes;

	memcpy(&bytes, p, sizeof(bytes));
	return !(bytes & 0x8080808080808080u);
}

bool utf8_valid(const char *p, size_t len)
{
	while (len) {
		size_t n = len >= 8 && is_ascii(p) ? 8 : utf8_char(p, len);

		if (!n)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

static bool is_control(const char *s, size_t n)
{
	const uint8_t *p = (const uint8_t *)s;

	return n == 1 ? p[0] < 0x20 || p[0] == 0x7f : n == 2 && p[0] == 0xc2 && p[1] < 0xa0;
}

bool utf8_printable(const char *p, size_t len)
{
	while (len) {
		size_t n = utf8_char(p, len);

		if (!n || is_control(p, n))
			return false;
		p += n;
		len -= n;
	}
	return true;
}

static int clean(struct buf *out, const char *p, size_t len, bool printable)
{
	while (len) {
		size_t n = utf8_char(p, len);

		if (n && !(printable && is_control(p, n)))
			buf_add(out, p, n);
		else
			buf_str(out, "\xef\xbf\xbd");
		n += !n;
		p += n;
		len -= n;
	}
	return out->error;
}

int utf8_clean(struct buf *out, const char *p, size_t len)
{
	return clean(out, p, len, false);
}

int utf8_clean_printable(struct buf *out, const char *p, size_t len)
{
	return clean(out, p, len, true);
}
