/* SPDX-License-Identifier: Apache-2.0 */
/* A client of one server: sends requests and follows redirects. */
#include <stdlib.h>

#include "internal.h"

#define MAX_REDIRECTS 5

int fusee_http_open(struct fusee_http **ret, const struct fusee_self *self,
		    const struct fusee_http_options *options, const char *const *own)
{
	struct fusee_http *h = calloc(1, sizeof(*h));
	int r = h ? 0 : -ENOMEM;

	*ret = NULL;
	if (r)
		return r;
	h->self = self;
	h->options = options;
	h->own = own;
	h->receiver.head = malloc(HTTP_HEAD + 1);
	h->receiver.body = malloc(FUSEE_HTTP_BODY + 1);
	r = h->receiver.head && h->receiver.body ? http_check(h) : -ENOMEM;
	/* libcurl counts the calls; there is no cleanup, since plugins are never unloaded */
	if (!r && curl_global_init(CURL_GLOBAL_DEFAULT))
		r = fusee_fail(self, -EIO, "libcurl cannot be initialized");
	if (!r) {
		h->multi = curl_multi_init();
		h->easy = curl_easy_init();
		r = h->multi && h->easy ? 0 : -ENOMEM;
	}
	if (r) {
		fusee_http_close(h);
		return r;
	}
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, 1L);
	*ret = h;
	return 0;
}

void fusee_http_close(struct fusee_http *h)
{
	if (!h)
		return;
	curl_easy_cleanup(h->easy);
	if (h->multi)
		curl_multi_cleanup(h->multi);
	free(h->receiver.head);
	free(h->receiver.body);
	free(h->redirect);
	free(h->shown);
	free(h->parts);
	free(h);
}

void fusee_http_cancel(struct fusee_http *h)
{
	atomic_store(&h->cancelled, true);
	curl_multi_wakeup(h->multi);
}

const char *fusee_http_shown(const struct fusee_http *h)
{
	return h->shown;
}

/* ---- a request ---- */

static void count_request(struct fusee_http *h, long status)
{
	static const char *const kinds[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

	fusee_count_by(h->self, "requests", "status",
		       status >= 0 && status < 600 ? kinds[status / 100] : "other", 1);
}

static bool is_redirect(long status)
{
	return status == 301 || status == 302 || status == 307 || status == 308;
}

/* Checks whether the request may be sent again to h->redirect. 0, or -errno after host->fail(). */
static int check_redirect(struct fusee_http *h, const char *url, long status, int hops)
{
	if (!h->redirect)
		return fusee_fail(h->self, -EAGAIN, "'%s' answered %ld without a location",
				  h->shown, status);
	if (!http_same_place(url, h->redirect))
		return fusee_fail(h->self, -EAGAIN,
				  "'%s' redirects to '%.*s': make that the address if it is right",
				  h->shown, (int)strcspn(h->redirect, "?#"), h->redirect);
	if (hops == MAX_REDIRECTS)
		return fusee_fail(h->self, -EAGAIN, "'%s' redirects without end", h->shown);
	return 0;
}

/* Whether a redirect is not followed: a body that was read while it was sent cannot be sent
 * again. */
static bool is_last(const struct fusee_http_request *q)
{
	return q->flags & FUSEE_HTTP_NO_REDIRECT || q->source || q->url;
}

static int url_of(const struct fusee_http *h, const struct fusee_http_request *q, char **url)
{
	if (!q->url)
		return http_url(h->options->url, q->path, q->query, url);
	*url = strdup(q->url);
	return *url ? 0 : -ENOMEM;
}

static int follow(struct fusee_http *h, const struct fusee_http_request *q,
		  struct curl_slist *headers, struct fusee_str body, struct fusee_http_answer *a)
{
	char *url;
	int r = url_of(h, q, &url);

	if (r)
		return fusee_fail(h->self, r, "no memory for a request");
	for (int hops = 0; !r; hops++) {
		r = http_request(h, url, headers, q, body, a);
		if (r)
			break;
		count_request(h, a->status);
		if (!is_redirect(a->status) || is_last(q))
			break;
		r = check_redirect(h, h->options->url, a->status, hops);
		if (r) {
			http_denied(h, q->out);
			break;
		}
		free(url);
		url = h->redirect;
		h->redirect = NULL;
	}
	free(url);
	return r;
}

int fusee_http_send(struct fusee_http *h, const struct fusee_http_request *q,
		    struct fusee_http_answer *answer)
{
	struct fusee_str body = q->body, packed = {0};
	struct curl_slist *headers = NULL;
	int r;

	*answer = (struct fusee_http_answer){.error = ""};
	if (atomic_load(&h->cancelled))
		return fusee_fail(h->self, -ECANCELED, "ended before a request to '%s'", h->shown);
	if (q->flags & FUSEE_HTTP_GZIP) {
		r = http_gzip(body, &packed);
		if (r)
			return fusee_fail(h->self, r, "no memory to compress a request");
		body = packed;
	}
	r = http_headers(h, q, &headers);
	if (r == -EAGAIN)
		http_denied(h, q->out);
	if (!r)
		r = follow(h, q, headers, body, answer);
	http_headers_free(headers);
	free((char *)(uintptr_t)packed.p);
	return r;
}
