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

static uint32_t code_point(const char *s, size_t n)
{
	const uint8_t *p = (const uint8_t *)s;
	uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/* Control characters, and characters that are invisible but change how others are shown:
 * bidirectional controls, line separators, zero-width characters. The joiners U+200C and U+200D are
 * part of words. */
static bool is_control(const char *s, size_t n)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},       {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
		{0x180e, 0x180e},   {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},
		{0x2060, 0x206f},   {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe007f},
	};
	uint32_t c = code_point(s, n);

	if (c >= 0x20 && c < 0x7f)
		return false;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges) && c >= ranges[i].first; i++)
		if (c <= ranges[i].last)
			return true;
	return false;
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
