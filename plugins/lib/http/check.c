/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "internal.h"

static int check_url(struct fusee_http *h)
{
	const struct fusee_http_options *o = h->options;
	uint32_t flags = fusee_http_url_flags(o->url);
	bool plain = flags & FUSEE_HTTP_URL_PLAIN;

	if (!flags)
		return fusee_fail(h->self, -EINVAL,
				  "option 'url': '%s' is not an http:// or https:// address",
				  o->url);
	if (flags & FUSEE_HTTP_URL_USER)
		return fusee_fail(h->self, -EINVAL,
				  "option 'url' has a password in it: use 'user' and "
				  "'password_file'");
	h->shown = strndup(o->url, strcspn(o->url, "?#"));
	if (!h->shown)
		return -ENOMEM;
	if (plain && !(flags & FUSEE_HTTP_URL_LOOPBACK) && (*o->bearer_file || *o->password_file))
		fusee_log(h->self, FUSEE_WARNING,
			  "not https: everyone on the way can read the password or token");
	if (o->insecure && !plain)
		fusee_log(h->self, FUSEE_WARNING,
			  "insecure: the server's certificate is not checked");
	return 0;
}

static int check_proxy(struct fusee_http *h, CURLU *u)
{
	if (!*h->options->proxy)
		return 0;
	if (curl_url_set(u, CURLUPART_URL, h->options->proxy, CURLU_NON_SUPPORT_SCHEME) ||
	    (!http_part_is(u, CURLUPART_SCHEME, "http") &&
	     !http_part_is(u, CURLUPART_SCHEME, "https") &&
	     !http_part_is(u, CURLUPART_SCHEME, "socks5h")) ||
	    http_has(u, CURLUPART_USER))
		return fusee_fail(h->self, -EINVAL,
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

static bool is_among(struct fusee_str s, const char *const *names)
{
	for (; *names; names++)
		if (s.len == strlen(*names) && !strncasecmp(s.p, *names, s.len))
			return true;
	return false;
}

static int check_headers(struct fusee_http *h)
{
	static const char *const ours[] = {"content-type", "content-length", "transfer-encoding",
					   "expect", NULL};
	static const char *const secret[] = {"authorization", NULL};
	static const char *const tenant[] = {HTTP_TENANT, NULL};

	FUSEE_FOR_EACH (struct fusee_label, l, h->options->headers) {
		if (!is_name(l->key) || !fusee_http_is_value(l->str))
			return fusee_fail(h->self, -EINVAL,
					  "option 'headers': '%.*s' is not a header's name, or its "
					  "value has a control character",
					  (int)l->key.len, l->key.p);
		if (is_among(l->key, ours) || (h->own && is_among(l->key, h->own)))
			return fusee_fail(h->self, -EINVAL,
					  "option 'headers': '%.*s' is set by the plugin itself",
					  (int)l->key.len, l->key.p);
		if (is_among(l->key, secret) && (*h->options->bearer_file || *h->options->user))
			return fusee_fail(h->self, -EINVAL,
					  "option 'headers': '%.*s' is set by 'bearer_file' or "
					  "'user'",
					  (int)l->key.len, l->key.p);
		if (is_among(l->key, tenant) && *h->options->tenant)
			return fusee_fail(h->self, -EINVAL,
					  "option 'headers': '%.*s' is set by 'tenant'",
					  (int)l->key.len, l->key.p);
	}
	return 0;
}

static int check_file(struct fusee_http *h, const char *option, const char *path)
{
	if (*path && access(path, R_OK))
		return fusee_fail(h->self, -errno, "option '%s': cannot read '%s': %s", option,
				  path, strerror(errno));
	return 0;
}

/* libcurl reads these files at each connection. The host watches files that it has read: a change
 * ends the wait of a denied sink. */
static int check_watched(struct fusee_http *h, const char *option, const char *path)
{
	int r = check_file(h, option, path);
	char unused[1];

	if (!r && *path)
		h->self->host->read_secret(h->self->in, path, unused, sizeof(unused));
	return r;
}

static int check_secrets(struct fusee_http *h)
{
	int r = check_file(h, "bearer_file", h->options->bearer_file);

	if (!r)
		r = check_file(h, "password_file", h->options->password_file);
	if (!r)
		r = check_watched(h, "ca_file", h->options->ca_file);
	if (!r)
		r = check_watched(h, "cert_file", h->options->cert_file);
	if (!r)
		r = check_watched(h, "key_file", h->options->key_file);
	if (r)
		return r;
	if (*h->options->bearer_file && *h->options->user)
		return fusee_fail(h->self, -EINVAL, "'bearer_file' and 'user' exclude each other");
	if (!*h->options->user != !*h->options->password_file)
		return fusee_fail(h->self, -EINVAL, "'user' and 'password_file' belong together");
	if (strchr(h->options->user, ':') || !fusee_http_is_value(fusee_text(h->options->user)))
		return fusee_fail(h->self, -EINVAL,
				  "option 'user': no ':' and no control characters");
	if (*h->options->key_file && !*h->options->cert_file)
		return fusee_fail(h->self, -EINVAL, "'key_file' needs 'cert_file'");
	if (!fusee_http_is_value(fusee_text(h->options->tenant)))
		return fusee_fail(h->self, -EINVAL, "option 'tenant': no control characters");
	return 0;
}

int http_check(struct fusee_http *h)
{
	CURLU *u = curl_url();
	int r;

	if (!u)
		return -ENOMEM;
	r = check_url(h);
	if (!r)
		r = check_proxy(h, u);
	if (!r)
		r = check_headers(h);
	if (!r)
		r = check_secrets(h);
	curl_url_cleanup(u);
	return r;
}
