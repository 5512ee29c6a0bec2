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

static char *next_end(char *from)
{
	while (*from && (*from != '\'' || !ends(from)))
		from++;
	return from;
}

/* The end of the quotation that this quote opens, or of the text. A URL's password may have a quote
 * that looks like an end: a user goes on to the next '@', but that of another URL. */
static char *end_of_quotation(char *open)
{
	char *end = next_end(open + 1), *at;

	while (*end && memmem(open, (size_t)(end - open), "://", 3)) {
		const size_t word = strcspn(end, SPACES);

		at = strchr(end, '@');
		if (!at || memmem(end, (size_t)(at - end), "://", 3) ||
		    (word < (size_t)(at - end) && memchr(open, '@', (size_t)(end - open))))
			break;
		if (!*next_end(at) && word < (size_t)(at - end))
			break;
		end = *next_end(at) ? next_end(at) : end + word;
	}
	return end;
}

static void hide_in(char *text, bool bare, bool query)
{
	for (char *p = text; *p;) {
		bool quoted = *p == '\'';
		char *end;

		if (strchr(SPACES, *p)) {
			p++;
			continue;
		}
		end = quoted ? end_of_quotation(p) : p + strcspn(p, SPACES);
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

static bool has_part(const char *name, const char *const *parts)
{
	while (*parts && !strcasestr(name, *parts))
		parts++;
	return *parts;
}

/* "s3://NAME/PREFIX": no place for a user, but '@' and '?' may be in the prefix. */
static bool is_bucket(const char *value)
{
	static const char name[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
	const char *end = value + strlen("s3://");

	if (strncmp(value, "s3://", strlen("s3://")) != 0)
		return false;
	end += strspn(end, name);
	return !*end || *end == '/';
}

void credentials_hide_option(const char *option, char *value)
{
	static const char *const parts[] = {"addr",    "bucket", "endpoint", "host",
					    "kubelet", "proxy",  "server",   "target",
					    "uri",     "url",    NULL};

	if (*value != '/' && !is_bucket(value) && (strstr(value, "://") || has_part(option, parts)))
		credentials_hide_value(value);
}

bool credentials_are_named(const char *name)
{
	static const char *const parts[] = {"auth",   "cookie", "key", "passw",
					    "secret", "token",  NULL};

	return has_part(name, parts);
}
