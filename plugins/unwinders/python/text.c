/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT 0xfffd

static char *put(char *to, uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = REPLACEMENT;
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 63));
	} else {
		if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
		} else {
			*to++ = (char)(0xf0 | c >> 18);
			*to++ = (char)(0x80 | (c >> 12 & 63));
		}
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	}
	return to;
}

char *python_text(const unsigned char *bytes, const struct python_text *text)
{
	uint32_t kind = text->kind == 2 || text->kind == 4 ? text->kind : 1;
	char *out = malloc(4 * (size_t)text->bytes / kind + 4), *to = out;

	if (!out)
		return NULL;
	for (uint32_t i = 0; i + kind <= text->bytes; i += kind) {
		uint32_t c = 0;

		memcpy(&c, bytes + i, kind);
		to = put(to, c);
	}
	strcpy(to, text->shortened ? "..." : "");
	return out;
}
