/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends profiles to any URL that takes pprof. The status of the answer decides: the profile is
 * accepted, sent again later, or dropped. The core keeps the queue, times the retries and encodes.
 */
#include "http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "request.h"

#define MAX_REDIRECTS 5

static const char *const methods[] = {[HTTP_POST] = "POST", [HTTP_PUT] = "PUT", NULL};

static const struct fusee_option options[] = {
	FUSEE_OPTION_STRING(struct http, url, NULL,
			    "Where profiles are sent: http:// or https://."),
	FUSEE_OPTION_ENUM(struct http, method, "POST", methods, "Method of the request."),
	FUSEE_OPTION_MAP(struct http, headers, "",
			 "More headers of each request; no place for secrets."),
	FUSEE_OPTION_STRING(struct http, content_type, "application/octet-stream",
			    "Content-Type of the body, which is gzipped pprof."),
	FUSEE_OPTION_STRING(struct http, bearer_file, "",
			    "File with a bearer token, read for each request; '' for none."),
	FUSEE_OPTION_STRING(struct http, user, "", "User of basic authentication; '' for none."),
	FUSEE_OPTION_STRING(struct http, password_file, "",
			    "File with that user's password, read for each request."),
	FUSEE_OPTION_DURATION(struct http, timeout, "30s", FUSEE_SECOND / 10, FUSEE_HOUR,
			      "Longest time of a request; a longer request has failed."),
	FUSEE_OPTION_DURATION(struct http, connect_timeout, "10s", FUSEE_SECOND / 10, FUSEE_HOUR,
			      "Longest time to find the server and to connect to it."),
	FUSEE_OPTION_STRING(struct http, ca_file, "",
			    "Certificates (PEM) that vouch for the server's; '' for the system's."),
	FUSEE_OPTION_STRING(struct http, cert_file, "",
			    "Certificate (PEM) of this client, if the server requires it."),
	FUSEE_OPTION_STRING(struct http, key_file, "",
			    "Key (PEM) of cert_file; '' if cert_file contains it."),
	FUSEE_OPTION_BOOL(struct http, insecure, "false",
			  "Accepts any certificate: everyone on the way can read and change all."),
	FUSEE_OPTION_STRING(struct http, proxy, "",
			    "Proxy, http://, https:// or socks5h://; the environment's proxies are "
			    "ignored."),
};

static void count_request(struct http *h, long status)
{
	static const char *const kinds[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

	fusee_count_by(&h->self, "requests", "status",
		       status >= 0 && status < 600 ? kinds[status / 100] : "other", 1);
}

/* ---- what an answer means ---- */

static bool is_redirect(long status)
{
	return status == 301 || status == 302 || status == 307 || status == 308;
}

/* A failure that may be over at the next attempt. */
static bool is_temporary(long status)
{
	return status == 408 || status == 429 || status >= 500;
}

/* What consume() returns for this answer, which is no redirect. */
static int result_of(struct http *h, const struct http_answer *a, struct fusee_sink_out *out)
{
	const char *colon = *a->line ? ": " : "";

	if (!a->status)
		return fusee_fail(&h->self, -EAGAIN, "no answer from '%s': %s", h->shown, a->error);
	if (a->status >= 200 && a->status < 300)
		return 0;
	if (!is_temporary(a->status))
		return fusee_fail(&h->self, -EBADMSG, "'%s' answered %ld%s%s", h->shown, a->status,
				  colon, a->line);
	if (a->retry_after) {
		h->self.host->sink->retry_after(out, a->retry_after);
		return fusee_fail(&h->self, -EAGAIN, "'%s' answered %ld, again in %llu s%s%s",
				  h->shown, a->status,
				  (unsigned long long)a->retry_after / FUSEE_SECOND, colon,
				  a->line);
	}
	return fusee_fail(&h->self, -EAGAIN, "'%s' answered %ld%s%s", h->shown, a->status, colon,
			  a->line);
}

/* May the request be sent again, to a->redirect? 0, or -errno after host->fail(). */
static int check_redirect(struct http *h, const struct http_answer *a, int hops)
{
	if (!a->redirect)
		return fusee_fail(&h->self, -EBADMSG, "'%s' answered %ld without a location",
				  h->shown, a->status);
	if (!http_same_place(h->url, a->redirect))
		return fusee_fail(&h->self, -EBADMSG,
				  "'%s' redirects to '%.*s': make that the 'url' if it is right",
				  h->shown, (int)strcspn(a->redirect, "?#"), a->redirect);
	if (hops == MAX_REDIRECTS)
		return fusee_fail(&h->self, -EBADMSG, "'%s' redirects without end", h->shown);
	return 0;
}

static int deliver(struct http *h, const struct fusee_delivery *d, struct curl_slist *headers,
		   struct fusee_str body)
{
	char *url = strdup(h->url);
	struct http_answer a = {0};
	int r = -ENOMEM;

	for (int hops = 0; url; hops++) {
		http_answer_fini(&a);
		r = http_request(h, url, headers, body, &a);
		if (r)
			break;
		if (a.cancelled) {
			r = fusee_fail(&h->self, -ECANCELED, "ended while waiting for '%s'",
				       h->shown);
			break;
		}
		count_request(h, a.status);
		if (!is_redirect(a.status)) {
			r = result_of(h, &a, d->out);
			break;
		}
		r = check_redirect(h, &a, hops);
		if (r)
			break;
		free(url);
		url = a.redirect;
		a.redirect = NULL;
	}
	http_answer_fini(&a);
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
	r = h->self.host->sink->encode(d->out, d->profile, FUSEE_PPROF_GZ, &body);
	if (r)
		return fusee_fail(&h->self, r, "cannot encode a profile: %s", strerror(-r));
	r = http_headers(h, d->profile, &headers);
	if (!r)
		r = deliver(h, d, headers, body);
	if (!r)
		fusee_count(&h->self, "bytes_sent", body.len);
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

	fusee_self_init(ctx, in, host);
	r = http_check(h);
	if (r)
		return r;
	/* libcurl counts the calls; there is no cleanup, since plugins are never unloaded */
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return fusee_fail(&h->self, -EIO, "libcurl cannot be initialized");
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
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct http), .init = init,
	     .fini = fini, .ops = &ops);
