/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the list of servers. */
#include <stdbool.h>
#include <string.h>

#include "fetcher/fetcher.h"

static bool is_blank(char c)
{
	return c == ' ' || c == ',';
}

static bool is_server(const char *url, size_t n)
{
	size_t scheme = !strncmp(url, "http://", 7) ? 7 : !strncmp(url, "https://", 8) ? 8 : 0;

	return scheme && n > scheme && url[scheme] != '/';
}

const char *fetcher_wrong_servers(const char *list)
{
	if (strlen(list) >= FETCHER_MAX_SERVERS)
		return "is too long";
	for (const char *p = list; *p; p++)
		if (*p < ' ' || *p > '~')
			return "has a character that no URL has";
	if (strchr(list, '@'))
		return "has a user or a password, which a URL must not have";
	for (size_t n; *list; list += n) {
		n = strcspn(list, " ,");
		if (n && !is_server(list, n))
			return "must be a URL as https://debuginfod.debian.net";
		n += is_blank(list[n]);
	}
	return NULL;
}
