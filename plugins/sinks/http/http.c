/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles to any URL that takes pprof. What the answer's status says is what happens: taken, come
 * again later, or never. The queue, the times of retries and the encoding are the core's.
 */
#include "http.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ll
#define HOUR (3600 * SECOND)
#define REDIRECTS 5

static const char *const methods[] = {[HTTP_POST] = "POST", [HTTP_PUT] = "PUT", NULL};

#define OPTION(field, kind, text, ...)                                                  \
	{                                                                               \
		.name = #field, .type = (kind), .offset = offsetof(struct http, field), \
		.doc = (text), __VA_ARGS__                                              \
	}

static const struct fusee_option options[] = {
	OPTION(url, FUSEE_STRING, "Where profiles are sent: http:// or https://."),
	OPTION(method, FUSEE_ENUM, "Method of the request.", .def = "POST", .choices = methods),
	OPTION(headers, FUSEE_MAP, "More headers of each request; no place for secrets.",
	       .def = ""),
	OPTION(content_type, FUSEE_STRING, "Content-Type of the body, which is gzipped pprof.",
	       .def = "application/octet-stream"),
	OPTION(bearer_file, FUSEE_STRING,
	       "File with a bearer token, read anew for each request; '' for none.", .def = ""),
	OPTION(user, FUSEE_STRING, "User of basic authentication; '' for none.", .def = ""),
	OPTION(password_file, FUSEE_STRING,
	       "File with that user's password, read anew for each request.", .def = ""),
	OPTION(timeout, FUSEE_DURATION, "A request that takes longer has failed.", .def = "30s",
	       .min = SECOND / 10, .max = HOUR),
	OPTION(connect_timeout, FUSEE_DURATION,
	       "The same for finding the server and connecting to it.", .def = "10s",
	       .min = SECOND / 10, .max = HOUR),
	OPTION(ca_file, FUSEE_STRING,
	       "Certificates (PEM) that the server's must come from; '' for the system's.",
	       .def = ""),
	OPTION(cert_file, FUSEE_STRING, "Our own certificate (PEM), if the server wants one.",
	       .def = ""),
	OPTION(key_file, FUSEE_STRING, "Its key (PEM); '' if it is in cert_file.", .def = ""),
	OPTION(insecure, FUSEE_BOOL,
	       "Any certificate is taken: whoever is on the way can read and change all.",
	       .def = "false"),
	OPTION(proxy, FUSEE_STRING,
	       "Proxy, http://, https:// or socks5h://; the environment's are not asked.",
	       .def = ""),
};

int http_fail(struct http *h, int err, const char *format, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return h->host->fail(h->in, err, text);
}

static void count(struct http *h, long status)
{
	static const char *const kinds[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
	const char *kind = status >= 0 && status < 600 ? kinds[status / 100] : "other";
	struct fusee_label l = {.key = {"status", 6}, .str = {kind, strlen(kind)}};

	h->host->count(h->in, "requests", &l, 1, 1);
}

/* ---- what an answer means ---- */

static bool is_redirect(long status)
{
	return status == 301 || status == 302 || status == 307 || status == 308;
}

static bool is_passing(long status)
{
	return status == 408 || status == 429 || status >= 500;
}

static int meaning(struct http *h, const struct answer *a, struct fusee_sink_out *out)
{
	const char *colon = *a->line ? ": " : "";

	if (!a->status)
		return http_fail(h, -EAGAIN, "no answer from '%s': %s", h->shown, a->error);
	if (a->status >= 200 && a->status < 300)
		return 0;
	if (!is_passing(a->status))
		return http_fail(h, -EBADMSG, "'%s' answered %ld%s%s", h->shown, a->status, colon,
				 a->line);
	if (a->retry_after) {
		h->host->sink->retry_after(out, a->retry_after);
		return http_fail(h, -EAGAIN, "'%s' answered %ld, again in %llu s%s%s", h->shown,
				 a->status, (unsigned long long)a->retry_after / SECOND, colon,
				 a->line);
	}
	return http_fail(h, -EAGAIN, "'%s' answered %ld%s%s", h->shown, a->status, colon, a->line);
}

/* The place where the request is to be sent again: in a->redirect, else -errno. */
static int redirected(struct http *h, const struct answer *a, int hops)
{
	if (!a->redirect)
		return http_fail(h, -EBADMSG, "'%s' answered %ld without a place to go", h->shown,
				 a->status);
	if (!http_same_place(h->url, a->redirect))
		return http_fail(h, -EBADMSG,
				 "'%s' leads to another place, '%.*s': make that the 'url' if it "
				 "is right",
				 h->shown, (int)strcspn(a->redirect, "?#"), a->redirect);
	if (hops == REDIRECTS)
		return http_fail(h, -EBADMSG, "'%s' leads on and on", h->shown);
	return 0;
}

static int deliver(struct http *h, const struct fusee_delivery *d, struct curl_slist *headers,
		   struct fusee_str body)
{
	char *url = strdup(h->url);
	struct answer a = {0};
	int r = -ENOMEM;

	for (int hops = 0; url; hops++) {
		answer_fini(&a);
		r = http_request(h, url, headers, body, &a);
		if (r)
			break;
		if (a.cancelled) {
			r = http_fail(h, -ECANCELED, "ended while waiting for '%s'", h->shown);
			break;
		}
		count(h, a.status);
		if (!is_redirect(a.status)) {
			r = meaning(h, &a, d->out);
			break;
		}
		r = redirected(h, &a, hops);
		if (r)
			break;
		free(url);
		url = a.redirect;
		a.redirect = NULL;
	}
	answer_fini(&a);
	free(url);
	return r;
}

static int consume(void *ctx, const struct fusee_delivery *d)
{
	struct http *h = ctx;
	struct curl_slist *headers = NULL;
	struct fusee_str body;
	int r;

	if (atomic_load(&h->cancelled))
		return -ECANCELED;
	r = h->host->sink->encode(d->out, d->profile, FUSEE_PPROF_GZ, &body);
	if (r)
		return http_fail(h, r, "cannot encode a profile: %s", strerror(-r));
	r = http_headers(h, d->profile, &headers);
	if (!r)
		r = deliver(h, d, headers, body);
	if (!r)
		h->host->count(h->in, "bytes_sent", NULL, 0, body.len);
	http_headers_free(headers);
	return r;
}

static void cancel(void *ctx)
{
	struct http *h = ctx;

	atomic_store(&h->cancelled, true);
	curl_multi_wakeup(h->multi);
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct http *h = ctx;
	int r;

	h->in = in;
	h->host = host;
	r = http_check(h);
	if (r)
		return r;
	/* counted by libcurl; the end of it is the process's, since plugins stay */
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return http_fail(h, -EIO, "libcurl does not start");
	h->multi = curl_multi_init();
	h->easy = curl_easy_init();
	if (!h->multi || !h->easy)
		return -ENOMEM;
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, 1L);
	return 0;
}

static void fini(void *ctx)
{
	struct http *h = ctx;

	curl_easy_cleanup(h->easy);
	if (h->multi)
		curl_multi_cleanup(h->multi);
	free(h->shown);
}

static const struct fusee_sink_ops ops = {
	.size = sizeof(ops), .consume = consume, .cancel = cancel};

FUSEE_PLUGIN(http, FUSEE_SINK, .version = "0.1",
	     .doc = "Sends profiles to a URL that takes gzipped pprof.",
	     .options = {options, sizeof(options) / sizeof(*options), sizeof(*options)},
	     .ctx_size = sizeof(struct http), .init = init, .fini = fini, .ops = &ops);
