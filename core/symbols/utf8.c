/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/utf8.h"

#include <stdint.h>

#include "base/buf.h"

/* Bytes of the character at s, 0: none starts there. */
static size_t one(const unsigned char *s, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80 ? 1 : (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : 4;
	uint32_t c;

	if (n == 1)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (n > left || (n == 4 && (s[0] & 0xf8) != 0xf0))
		return 0;
	c = s[0] & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* C1 controls start escape sequences in some terminals */
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || c < 0xa0)
		return 0;
	return n;
}

bool utf8_is_clean(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	for (size_t i = 0; i < len;) {
		size_t n = one(s + i, len - i);

		if (!n)
			return false;
		i += n;
	}
	return true;
}

int utf8_clean(struct buf *b, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	for (size_t i = 0; i < len;) {
		size_t n = one(s + i, len - i);

		if (n)
			buf_add(b, text + i, n);
		else
			buf_str(b, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	return b->error;
}
