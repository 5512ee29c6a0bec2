/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <strings.h>

#include "internal.h"

bool http_has(CURLU *u, CURLUPart part)
{
	char *text = NULL;
	bool there = !curl_url_get(u, part, &text, 0);

	curl_free(text);
	return there;
}

bool http_part_is(CURLU *u, CURLUPart part, const char *text)
{
	char *got = NULL;
	bool is = !curl_url_get(u, part, &got, CURLU_DEFAULT_PORT) && !strcasecmp(got, text);

	curl_free(got);
	return is;
}

static bool is_loopback(CURLU *u)
{
	struct in_addr at; /* a host name may begin with "127." too */
	char *host = NULL;
	bool is = !curl_url_get(u, CURLUPART_HOST, &host, 0) &&
		  (!strcmp(host, "localhost") || !strcmp(host, "[::1]") ||
		   (inet_pton(AF_INET, host, &at) == 1 && ntohl(at.s_addr) >> 24 == 127));

	curl_free(host);
	return is;
}

uint32_t fusee_http_url_flags(const char *url)
{
	CURLU *u = curl_url();
	bool plain, valid = u && !curl_url_set(u, CURLUPART_URL, url, 0);
	uint32_t flags = 0;

	plain = valid && http_part_is(u, CURLUPART_SCHEME, "http");
	valid = valid && http_has(u, CURLUPART_HOST) &&
		(plain || http_part_is(u, CURLUPART_SCHEME, "https"));
	if (valid)
		flags = FUSEE_HTTP_URL_VALID | (plain ? FUSEE_HTTP_URL_PLAIN : 0) |
			(is_loopback(u) ? FUSEE_HTTP_URL_LOOPBACK : 0);
	if (valid && (http_has(u, CURLUPART_USER) || http_has(u, CURLUPART_PASSWORD)))
		flags |= FUSEE_HTTP_URL_USER;
	if (valid && (http_has(u, CURLUPART_QUERY) || http_has(u, CURLUPART_FRAGMENT)))
		flags |= FUSEE_HTTP_URL_QUERY;
	curl_url_cleanup(u);
	return flags;
}

/* ---- redirects ---- */

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
	char *x = NULL;
	bool same = !curl_url_get(a, part, &x, CURLU_DEFAULT_PORT) && http_part_is(b, part, x);

	curl_free(x);
	return same;
}

bool http_same_place(const char *from, const char *to)
{
	CURLU *a = curl_url(), *b = curl_url();
	bool same = a && b && !curl_url_set(a, CURLUPART_URL, from, 0) &&
		    !curl_url_set(b, CURLUPART_URL, to, 0) && same_part(a, b, CURLUPART_HOST);

	if (same && !(same_part(a, b, CURLUPART_SCHEME) && same_part(a, b, CURLUPART_PORT)))
		same = http_part_is(a, CURLUPART_SCHEME, "http") &&
		       http_part_is(a, CURLUPART_PORT, "80") &&
		       http_part_is(b, CURLUPART_SCHEME, "https") &&
		       http_part_is(b, CURLUPART_PORT, "443");
	curl_url_cleanup(a);
	curl_url_cleanup(b);
	return same;
}

/* ---- a request's address ---- */

int http_url(const char *url, const char *path, const char *query, char **ret)
{
	size_t before = strcspn(url, "?#"), stem = before, rest;
	const char *old = url + before;

	rest = strcspn(old, "#");
	if (path)
		while (stem && url[stem - 1] == '/')
			stem--;
	if (asprintf(ret, "%.*s%s%.*s%s%s", (int)stem, url, path ? path : "", (int)rest, old,
		     !query      ? ""
		     : rest > 1  ? "&"
		     : rest == 1 ? ""
				 : "?",
		     query ? query : "") < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}
