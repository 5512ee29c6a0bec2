/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "check.h"

#define SECRET 8192 /* bytes of a token or password with its NUL, at most */

/* ---- the options ---- */

static bool loopback(CURLU *u)
{
	struct in_addr at; /* a name may begin with "127." too */
	char *host = NULL;
	bool is;

	if (curl_url_get(u, CURLUPART_HOST, &host, 0))
		return false;
	is = !strcmp(host, "localhost") || !strcmp(host, "[::1]") ||
	     (inet_pton(AF_INET, host, &at) == 1 && ntohl(at.s_addr) >> 24 == 127);
	curl_free(host);
	return is;
}

static bool has(CURLU *u, CURLUPart part)
{
	char *text = NULL;
	bool there = !curl_url_get(u, part, &text, 0);

	curl_free(text);
	return there;
}

static bool scheme_is(CURLU *u, const char *name)
{
	char *scheme = NULL;
	bool is = !curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) && !strcasecmp(scheme, name);

	curl_free(scheme);
	return is;
}

static int check_url(struct http *h, CURLU *u)
{
	bool plain;

	if (curl_url_set(u, CURLUPART_URL, h->url, 0) ||
	    (!scheme_is(u, "http") && !scheme_is(u, "https")) || !has(u, CURLUPART_HOST))
		return fusee_fail(&h->self, -EINVAL,
				  "option 'url': '%s' is not an http:// or https:// address",
				  h->url);
	if (has(u, CURLUPART_USER) || has(u, CURLUPART_PASSWORD))
		return fusee_fail(&h->self, -EINVAL,
				  "option 'url' has a password in it: use 'user' and "
				  "'password_file'");
	h->shown = strndup(h->url, strcspn(h->url, "?#"));
	if (!h->shown)
		return -ENOMEM;
	plain = scheme_is(u, "http") && !loopback(u);
	if (plain && (*h->bearer_file || *h->password_file))
		fusee_log(&h->self, FUSEE_WARNING,
			  "the url is not https: everyone on the way can read the password or "
			  "token");
	if (h->insecure && scheme_is(u, "https"))
		fusee_log(&h->self, FUSEE_WARNING,
			  "insecure: the server's certificate is not checked");
	return 0;
}

static int check_proxy(struct http *h, CURLU *u)
{
	if (!*h->proxy)
		return 0;
	if (curl_url_set(u, CURLUPART_URL, h->proxy, CURLU_NON_SUPPORT_SCHEME) ||
	    (!scheme_is(u, "http") && !scheme_is(u, "https") && !scheme_is(u, "socks5h")) ||
	    has(u, CURLUPART_USER))
		return fusee_fail(&h->self, -EINVAL,
				  "option 'proxy': it must be http://HOST:PORT, https:// or "
				  "socks5h://, without a password");
	return 0;
}

/* A token of RFC 9110 5.6.2. */
static bool is_name(struct fusee_str s)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (uint64_t i = 0; i < s.len; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr(others, c))))
			return false;
	}
	return s.len;
}

/* A line break in a value would begin another header. */
static bool is_value(struct fusee_str s)
{
	for (uint64_t i = 0; i < s.len; i++)
		if (((unsigned char)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f)
			return false;
	return true;
}

static bool is_among(struct fusee_str s, const char *const *names)
{
	for (; *names; names++)
		if (s.len == strlen(*names) && !strncasecmp(s.p, *names, s.len))
			return true;
	return false;
}

static int check_headers(struct http *h)
{
	static const char *const ours[] = {"content-type", "content-length",  "transfer-encoding",
					   "expect",       "idempotency-key", NULL};
	static const char *const secret[] = {"authorization", NULL};

	FUSEE_FOR_EACH (struct fusee_label, l, h->headers) {
		if (!is_name(l->key) || !is_value(l->str))
			return fusee_fail(&h->self, -EINVAL,
					  "option 'headers': '%.*s' is not a header's name, or its "
					  "value has a control character",
					  (int)l->key.len, l->key.p);
		if (is_among(l->key, ours))
			return fusee_fail(&h->self, -EINVAL,
					  "option 'headers': '%.*s' is set by the sink itself",
					  (int)l->key.len, l->key.p);
		if (is_among(l->key, secret) && (*h->bearer_file || *h->user))
			return fusee_fail(&h->self, -EINVAL,
					  "option 'headers': '%.*s' is set by 'bearer_file' or "
					  "'user'",
					  (int)l->key.len, l->key.p);
	}
	return 0;
}

static int check_file(struct http *h, const char *option, const char *path)
{
	if (*path && access(path, R_OK))
		return fusee_fail(&h->self, -errno, "option '%s': cannot read '%s': %s", option,
				  path, strerror(errno));
	return 0;
}

static int check_secrets(struct http *h)
{
	int r = check_file(h, "bearer_file", h->bearer_file);

	if (!r)
		r = check_file(h, "password_file", h->password_file);
	if (!r)
		r = check_file(h, "ca_file", h->ca_file);
	if (!r)
		r = check_file(h, "cert_file", h->cert_file);
	if (!r)
		r = check_file(h, "key_file", h->key_file);
	if (r)
		return r;
	if (*h->bearer_file && *h->user)
		return fusee_fail(&h->self, -EINVAL, "'bearer_file' and 'user' exclude each other");
	if (!*h->user != !*h->password_file)
		return fusee_fail(&h->self, -EINVAL, "'user' and 'password_file' belong together");
	if (strchr(h->user, ':') || !is_value(fusee_text(h->user)))
		return fusee_fail(&h->self, -EINVAL,
				  "option 'user': no ':' and no control characters");
	if (*h->key_file && !*h->cert_file)
		return fusee_fail(&h->self, -EINVAL, "'key_file' needs 'cert_file'");
	if (!is_value(fusee_text(h->content_type)))
		return fusee_fail(&h->self, -EINVAL,
				  "option 'content_type': no control characters");
	return 0;
}

int http_check(struct http *h)
{
	CURLU *u = curl_url();
	int r;

	if (!u)
		return -ENOMEM;
	r = check_url(h, u);
	if (!r)
		r = check_proxy(h, u);
	if (!r)
		r = check_headers(h);
	if (!r)
		r = check_secrets(h);
	curl_url_cleanup(u);
	return r;
}

/* ---- headers ---- */

static int add(struct curl_slist **list, const char *name, const char *value, uint64_t len)
{
	struct curl_slist *longer;
	char *line = NULL;
	int n;

	/* "Name;" is libcurl's form of an empty header; "Name:" would remove the header */
	n = len ? asprintf(&line, "%s: %.*s", name, (int)len, value) : asprintf(&line, "%s;", name);
	if (n < 0)
		return -ENOMEM;
	longer = curl_slist_append(*list, line);
	explicit_bzero(line, (size_t)n);
	free(line);
	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

/* The length, or -EAGAIN after host->fail(): a token that is missing now may be written later. */
static int read_secret(struct http *h, const char *path, char buf[SECRET])
{
	int n = h->self.host->read_secret(h->self.in, path, buf, SECRET);

	if (n < 0)
		return fusee_fail(&h->self, -EAGAIN, "cannot read '%s': %s", path, strerror(-n));
	if (!n || !is_value((struct fusee_str){buf, (uint64_t)n}))
		return fusee_fail(&h->self, -EAGAIN, "'%s' is empty or has several lines", path);
	return n;
}

static void base64(char *to, const char *from, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = 0;

		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < n ? (uint8_t)from[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			*to++ = i + k > n ? '=' : digits[v >> (18 - 6 * k) & 63];
	}
	*to = '\0';
}

static int add_authorization(struct http *h, struct curl_slist **list)
{
	char secret[SECRET], both[2 * SECRET + 256], text[3 * SECRET + 512];
	int r = read_secret(h, *h->bearer_file ? h->bearer_file : h->password_file, secret);
	size_t user = strlen(h->user), n;

	if (r < 0)
		goto out;
	if (*h->bearer_file) {
		n = (size_t)snprintf(text, sizeof(text), "Bearer %s", secret);
	} else {
		n = (size_t)snprintf(both, sizeof(both), "%s:%s", h->user, secret);
		if (user > SECRET || n >= sizeof(both)) {
			r = fusee_fail(&h->self, -EINVAL, "option 'user' is too long");
			goto out;
		}
		memcpy(text, "Basic ", 6);
		base64(text + 6, both, n);
		n = strlen(text);
	}
	r = add(list, "Authorization", text, n);
out:
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(both, sizeof(both));
	explicit_bzero(text, sizeof(text));
	return r;
}

int http_headers(struct http *h, const struct fusee_profile *p, struct curl_slist **ret)
{
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");
	char id[2 * sizeof(p->id) + 1];
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < sizeof(p->id); i++)
		snprintf(id + 2 * i, 3, "%02x", p->id[i]);
	if (!r)
		r = add(&list, "Content-Type", h->content_type, strlen(h->content_type));
	if (!r)
		r = add(&list, "Idempotency-Key", id, strlen(id));
	FUSEE_FOR_EACH (struct fusee_label, l, h->headers) {
		if (!r)
			r = add(&list, l->key.p, l->str.p, l->str.len);
	}
	if (!r && (*h->bearer_file || *h->user))
		r = add_authorization(h, &list);
	if (r)
		http_headers_free(list);
	*ret = r ? NULL : list;
	return r;
}

void http_headers_free(struct curl_slist *list)
{
	for (struct curl_slist *l = list; l; l = l->next)
		explicit_bzero(l->data, strlen(l->data));
	curl_slist_free_all(list);
}
