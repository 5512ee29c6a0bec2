/* SPDX-License-Identifier: Apache-2.0 */
#include "base/credentials.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define SPACES " \t\n"

/* Replaces the text up to `to` by up to three '*'. Returns their end. */
static char *mask(char *from, const char *to)
{
	size_t n = (size_t)(to - from), stars = n < 3 ? n : 3;

	memset(from, '*', stars);
	memmove(from + stars, to, strlen(to) + 1);
	return from + stars;
}

/* Hides in one word or value. Returns its new end. */
static char *hide(char *from, char *end, bool bare, bool query)
{
	char *scheme = memmem(from, (size_t)(end - from), "://", 3);
	char *start = scheme ? scheme + 3 : from, *at, *rest = start;
	const size_t behind = strlen(end);

	at = memrchr(start, '@', (size_t)(end - start));
	if (at && scheme && query && strcspn(start, "?#") < (size_t)(at - start))
		return mask(start, end); /* the '@' may be one of the query */
	if (at && (scheme || (bare && memchr(start, ':', (size_t)(at - start)))))
		rest = mask(start, at);
	end = rest + strlen(rest) - behind;
	rest += strcspn(rest, "?#");
	return scheme && query && rest < end ? mask(rest + 1, end) : end;
}

/* Whether the quote ends a quotation, and is no character of what is quoted. */
static bool ends(const char *quote)
{
	return !quote[1] || strchr(SPACES ",;:.)", quote[1]);
}

static void hide_in(char *text, bool bare, bool query)
{
	for (char *p = text; *p;) {
		bool quoted = *p == '\'';
		char *end = p + 1;

		if (strchr(SPACES, *p)) {
			p++;
			continue;
		}
		while (*end && (quoted ? *end != '\'' || !ends(end) : !strchr(SPACES, *end)))
			end++;
		if (quoted && !*end) { /* no quotation: a word */
			quoted = false;
			end = p + strcspn(p, SPACES);
		}
		p = hide(p + quoted, end, bare && quoted, query);
		p += quoted;
	}
}

void credentials_hide(char *text)
{
	if (strstr(text, "://"))
		hide_in(text, false, false);
}

void credentials_hide_quoted(char *text)
{
	hide_in(text, true, true);
}

void credentials_hide_value(char *value)
{
	hide(value, value + strlen(value), true, true);
}

bool credentials_are_named(const char *name)
{
	static const char *const parts[] = {"auth", "cookie", "key", "passw", "secret", "token"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}
