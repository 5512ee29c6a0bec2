/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/bytes.h>

#include "scrape.h"

#define MAX_SECONDS 3600u

static const char *const kinds[][2] = {
	{"profile", "cpu"},  {"heap", "alloc"},
	{"allocs", "alloc"}, {"mutex", "mutex"},
	{"block", "block"},  {"goroutine", "goroutine"},
	{"cpu", "cpu"},      {"threadcreate", "threadcreate"},
};

static const char *kind_of(const char *profile)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(profile, kinds[i][0]))
			return kinds[i][1];
	return profile;
}

/* ---- texts ---- */

/* As the core does, which takes no profile with a label that has such a character: control
 * characters, and what is invisible but changes how others are shown. */
static bool is_control(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},       {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
		{0x180e, 0x180e},   {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},
		{0x2060, 0x206f},   {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

bool scrape_is_text(const char *text)
{
	size_t len = strlen(text), n;
	uint32_t point;

	for (size_t i = 0; i < len; i += n) {
		n = fusee_character(text + i, len - i, &point);
		if (!n || is_control(point))
			return false;
	}
	return len <= SCRAPE_TEXT;
}

/* An address for a sentence: "***" replaces a user and password, and what follows '?' or '#'. A
 * password may have these in it, and a query '@': then all but the scheme is hidden. */
static void hide(char *to, size_t cap, const char *address)
{
	const char *at = strrchr(address, '@'), *rest = at ? at : address;
	size_t scheme = strspn(address, "abcdefghijklmnopqrstuvwxyz");
	size_t n;

	scheme = at && !strncmp(address + scheme, "://", 3) ? scheme + 3 : 0;
	if (at && address + strcspn(address, "?#") < at)
		rest = "";
	n = strcspn(rest, "?#");
	snprintf(to, cap, "%.*s%s%.*s%.1s%s", (int)scheme, address, at ? "***" : "", (int)n, rest,
		 rest + n, rest[n] ? "***" : "");
}

/* ---- the query ---- */

static void add_text(struct fusee_bytes *to, const char *text)
{
	fusee_bytes_add(to, text, strlen(text));
}

/* Appends a text with its reserved characters encoded. */
static void add_encoded(struct fusee_bytes *to, struct fusee_str s)
{
	char code[4];

	for (uint64_t i = 0; i < s.len; i++) {
		uint8_t c = (uint8_t)s.p[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || (c && strchr("-._~", c));

		snprintf(code, sizeof(code), "%%%02X", c);
		fusee_bytes_add(to, plain ? &s.p[i] : code, plain ? 1 : 3);
	}
}

/* The value of a parameter of an encoded query. NULL: it has none. */
static const char *parameter(const char *query, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = query; p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL)
		if (!strncmp(p, name, n) && p[n] == '=')
			return p + n + 1;
	return NULL;
}

static int make_query(struct address *a, const struct scrapes *s, const char *given)
{
	struct fusee_bytes b = {0};
	char seconds[32];

	add_text(&b, given);
	FUSEE_FOR_EACH (struct fusee_label, l, s->params) {
		add_text(&b, b.len ? "&" : "");
		add_encoded(&b, l->key);
		add_text(&b, "=");
		add_encoded(&b, l->str);
	}
	fusee_bytes_byte(&b, '\0');
	if (!b.error && !strcmp(a->profile, "profile") && !parameter(b.p, "seconds")) {
		snprintf(seconds, sizeof(seconds), "%sseconds=%llu", --b.len ? "&" : "",
			 (unsigned long long)(s->seconds / FUSEE_SECOND));
		add_text(&b, seconds);
		fusee_bytes_byte(&b, '\0');
	}
	a->query = b.p;
	return b.error ? -ENOMEM : 0;
}

static int read_seconds(struct address *a, const struct scrapes *s)
{
	const char *text = parameter(a->query, "seconds");
	char *end;
	unsigned long n;

	if (!text)
		return 0;
	n = strtoul(text, &end, 10);
	if (end == text || (*end && *end != '&') || n > MAX_SECONDS)
		return fusee_fail(&s->self, -EINVAL,
				  "the parameter 'seconds' of '%s' must be a number up to 3600",
				  a->path);
	a->lasts_ns = n * FUSEE_SECOND;
	return 0;
}

/* ---- the rest ---- */

static int set_path(struct address *a, const struct scrapes *s, const char *path)
{
	size_t n = strcspn(path, "?");
	char shown[SCRAPE_WHY];
	int r;

	hide(shown, sizeof(shown), path);
	if (*path != '/' || strchr(path, '#') || !fusee_http_is_value(fusee_text(path)) ||
	    strchr(path, ' '))
		return fusee_fail(&s->self, -EINVAL,
				  "option 'paths': '%s' is not /a/path or /a/path?query", shown);
	a->path = strndup(path, n);
	if (!a->path)
		return -ENOMEM;
	while (n > 1 && a->path[n - 1] == '/')
		a->path[--n] = '\0';
	a->profile = strrchr(a->path, '/') + 1;
	if (!*a->profile || !scrape_is_text(a->profile))
		return fusee_fail(&s->self, -EINVAL, "option 'paths': '%s' names no profile",
				  shown);
	a->kind = kind_of(a->profile);
	path += strcspn(path, "?");
	r = make_query(a, s, *path ? path + 1 : path);
	return r ? r : read_seconds(a, s);
}

static int set_base(struct address *a, const struct scrapes *s, const char *target)
{
	bool has_scheme = strstr(target, "://");
	char shown[SCRAPE_WHY];
	const char *host;
	uint32_t flags;
	int n = asprintf(&a->base, "%s%s%s",
			 has_scheme  ? ""
			 : s->scheme ? "https"
				     : "http",
			 has_scheme ? "" : "://", target);

	if (n < 0) {
		a->base = NULL;
		return -ENOMEM;
	}
	flags = fusee_http_url_flags(a->base);
	if (!flags || flags & (FUSEE_HTTP_URL_USER | FUSEE_HTTP_URL_QUERY) ||
	    !scrape_is_text(target)) {
		hide(shown, sizeof(shown), target);
		return fusee_fail(&s->self, -EINVAL,
				  "option 'targets': '%s' is not HOST:PORT, or http:// or https:// "
				  "with a host",
				  shown);
	}
	host = strstr(a->base, "://") + 3;
	a->instance = strndup(host, strcspn(host, "/"));
	return a->instance ? 0 : -ENOMEM;
}

int address_make(struct address *a, const struct scrapes *s, const char *target, const char *path)
{
	int r = set_base(a, s, target);

	return r ? r : set_path(a, s, path);
}

void address_free(struct address *a)
{
	free(a->base);
	free(a->instance);
	free(a->path);
	free(a->query);
}
