// SPDX-License-Identifier: Apache-2.0
#include "net/http_query.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

static int digit(char c)
{
	if (!isxdigit((unsigned char)c))
		return -1;
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static bool decode(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++, to++) {
		int high, low;

		*to = *p == '+' ? ' ' : *p;
		if (*p != '%')
			continue;
		high = digit(p[1]);
		low = high < 0 ? -1 : digit(p[2]);
		if (low < 0 || high + low == 0)
			return false;
		*to = (char)(high << 4 | low);
		p += 2;
	}
	*to = '\0';
	return true;
}

int http_query_parse(char *query, struct http_param *params, uint32_t max, uint32_t *n)
{
	char *rest = query, *pair;

	*n = 0;
	while ((pair = strsep(&rest, "&"))) {
		char *value = pair, *name = strsep(&value, "=");

		if (!*pair && !value)
			continue; /* empty, as in "a=1&&b=2" */
		if (*n == max)
			return -E2BIG;
		if (!value)
			value = name + strlen(name);
		if (!decode(name) || !decode(value))
			return -EINVAL;
		params[(*n)++] = (struct http_param){name, value};
	}
	return 0;
}
