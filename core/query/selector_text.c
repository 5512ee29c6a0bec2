/* SPDX-License-Identifier: Apache-2.0 */
#include "query/internal/selector_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* n digits of the base at p. false: there are fewer. */
static bool number(const char *p, int n, int base, uint32_t *ret)
{
	*ret = 0;
	for (int i = 0; i < n; i++) {
		if (digit(p[i]) >= base)
			return false;
		*ret = *ret * (uint32_t)base + (uint32_t)digit(p[i]);
	}
	return true;
}

static void put_character(struct buf *out, uint32_t c)
{
	char b[4] = {(char)c};
	size_t n = 1;

	if (c >= 0x80) {
		n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		for (size_t i = n; --i > 0; c >>= 6)
			b[i] = (char)(0x80 | (c & 0x3f));
		b[0] = (char)((0xf0 << (4 - n)) | c);
	}
	buf_add(out, b, n);
}

/* \x41, \101: a byte; \u00e9, \U0001f600: a character. */
static const char *put_number(const char **p, struct buf *out)
{
	char kind = **p;
	bool octal = kind >= '0' && kind <= '7';
	int n = octal ? 3 : kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
	const char *digits = *p + !octal;
	uint32_t c;

	if (!number(digits, n, octal ? 8 : 16, &c))
		return "a number in an escape is too short: \\101, \\x41, \\u0041, \\U00000041";
	if (kind == 'x' || octal) {
		char byte = (char)c;

		if (c > 255)
			return "an octal escape is above \\377";
		buf_add(out, &byte, 1);
	} else if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		return "there is no such character in Unicode";
	} else {
		put_character(out, c);
	}
	*p = digits + n;
	return NULL;
}

/* *p is behind the backslash. */
static const char *put_escape(const char **p, char quote, struct buf *out)
{
	static const char letters[] = "abfnrtv\\", bytes[] = "\a\b\f\n\r\t\v\\";
	const char *at = **p ? strchr(letters, **p) : NULL;

	if (**p && strchr("01234567xuU", **p))
		return put_number(p, out);
	if (!at && **p != quote)
		return "no such escape; a backslash in a value is written as two, or the value in "
		       "backquotes";
	buf_add(out, at ? &bytes[at - letters] : *p, 1);
	++*p;
	return NULL;
}

const char *selector_text(const char **p, struct buf *out)
{
	const char *begin = *p, *error = NULL;
	char quote = *(*p)++;
	size_t first = out->len;

	while (!error && **p != quote) {
		if (!**p || (**p == '\n' && quote != '`')) {
			*p = begin;
			return "the closing quote is missing";
		}
		if (**p == '\\' && quote != '`') {
			++*p;
			error = put_escape(p, quote, out);
			*p -= error != NULL;
		} else {
			buf_add(out, (*p)++, 1);
		}
	}
	if (error)
		return error;
	++*p;
	if (!out->error && out->len > first && !utf8_valid(out->p + first, out->len - first)) {
		*p = begin;
		return "the text is not UTF-8";
	}
	return NULL;
}
