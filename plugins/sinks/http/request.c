/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request by libcurl. Of the body only the first line is kept. The rest is read, up to
 * MAX_BODY, so that the connection can be used again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "request.h"

#define MS 1000000ull /* ns */
/* The cap for Retry-After, in seconds: a server's mistake must not stop a sink for a day. */
#define MAX_RETRY_AFTER 3600
#define MAX_HEAD (64u << 10) /* bytes of an answer's headers */
#define MAX_BODY (64u << 10) /* bytes of an answer's body */
#define POLL_MS 1000

void http_answer_fini(struct http_answer *a)
{
	free(a->redirect);
	*a = (struct http_answer){0};
}

/* ---- receiving ---- */

static size_t take_head(char *p, size_t size, size_t n, void *arg)
{
	struct http_answer *a = arg;

	n *= size;
	a->head += n;
	if (a->head > MAX_HEAD)
		return 0;
	if (n >= 5 && !memcmp(p, "HTTP/", 5))
		a->head_ended = false;
	else if (n && (*p == '\r' || *p == '\n'))
		a->head_ended = true;
	return n;
}

static size_t take_body(char *p, size_t size, size_t n, void *arg)
{
	struct http_answer *a = arg;

	n *= size;
	for (size_t i = 0; i < n && !a->line_ended; i++) {
		if (p[i] == '\n' || p[i] == '\r' || a->len == HTTP_LINE)
			a->line_ended = a->len;
		else
			a->line[a->len++] = p[i] >= ' ' && p[i] <= '~' ? p[i] : '?';
	}
	a->body += n;
	return a->body > MAX_BODY ? 0 : n;
}

/* ---- redirects ---- */

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
	char *x = NULL, *y = NULL;
	bool same = !curl_url_get(a, part, &x, CURLU_DEFAULT_PORT) &&
		    !curl_url_get(b, part, &y, CURLU_DEFAULT_PORT) && !strcasecmp(x, y);

	curl_free(x);
	curl_free(y);
	return same;
}

static bool part_is(CURLU *u, CURLUPart part, const char *text)
{
	char *x = NULL;
	bool is = !curl_url_get(u, part, &x, CURLU_DEFAULT_PORT) && !strcasecmp(x, text);

	curl_free(x);
	return is;
}

bool http_same_place(const char *from, const char *to)
{
	CURLU *a = curl_url(), *b = curl_url();
	bool same = a && b && !curl_url_set(a, CURLUPART_URL, from, 0) &&
		    !curl_url_set(b, CURLUPART_URL, to, 0) && same_part(a, b, CURLUPART_HOST);

	if (same && !(same_part(a, b, CURLUPART_SCHEME) && same_part(a, b, CURLUPART_PORT)))
		same = part_is(a, CURLUPART_SCHEME, "http") && part_is(a, CURLUPART_PORT, "80") &&
		       part_is(b, CURLUPART_SCHEME, "https") && part_is(b, CURLUPART_PORT, "443");
	curl_url_cleanup(a);
	curl_url_cleanup(b);
	return same;
}

/* ---- setting up ---- */

/* Sets an option unless an earlier SET() has failed; `code` keeps the first error. */
#define SET(option, value) (code = code ? code : curl_easy_setopt(c, option, value))

static CURLcode set_limits(struct http *h, CURL *c)
{
	CURLcode code = CURLE_OK;

	SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	/* without it a cancelled request waits until its name is resolved */
	SET(CURLOPT_QUICK_EXIT, 1L);
#endif
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_TIMEOUT_MS, (long)(h->timeout / MS));
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(h->connect_timeout / MS));
	/* "" keeps libcurl from reading proxies from the environment */
	SET(CURLOPT_PROXY, h->proxy);
	SET(CURLOPT_NOPROXY, "");
	return code;
}

static CURLcode set_tls(struct http *h, CURL *c)
{
	CURLcode code = CURLE_OK;

	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_SSL_VERIFYPEER, h->insecure ? 0L : 1L);
	SET(CURLOPT_SSL_VERIFYHOST, h->insecure ? 0L : 2L);
	if (*h->ca_file) {
		SET(CURLOPT_CAINFO, h->ca_file);
		/* else the system's certificates, which libcurl has in a folder, vouch too */
		SET(CURLOPT_CAPATH, NULL);
	}
	if (*h->cert_file)
		SET(CURLOPT_SSLCERT, h->cert_file);
	if (*h->cert_file)
		SET(CURLOPT_SSLKEY, *h->key_file ? h->key_file : h->cert_file);
	return code;
}

static CURLcode set_up(struct http *h, CURL *c, const char *url, struct curl_slist *headers,
		       struct fusee_str body, struct http_answer *a)
{
	CURLcode code = set_limits(h, c);

	if (!code)
		code = set_tls(h, c);
	SET(CURLOPT_URL, url);
	SET(CURLOPT_USERAGENT, "fusee");
	SET(CURLOPT_HTTPHEADER, headers);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	SET(CURLOPT_POSTFIELDS, body.p);
	if (h->method == HTTP_PUT)
		SET(CURLOPT_CUSTOMREQUEST, "PUT");
	SET(CURLOPT_ERRORBUFFER, a->error);
	SET(CURLOPT_HEADERFUNCTION, take_head);
	SET(CURLOPT_HEADERDATA, a);
	SET(CURLOPT_WRITEFUNCTION, take_body);
	SET(CURLOPT_WRITEDATA, a);
	return code;
}

/* ---- the request ---- */

/* True: the request has ended with *code; false: it was cancelled or could not begin. */
static bool perform(struct http *h, CURLcode *code)
{
	CURLMcode m = CURLM_OK;
	int running = 1, queued;
	CURLMsg *msg;

	while (!m && running && !atomic_load(&h->cancelled)) {
		m = curl_multi_perform(h->multi, &running);
		if (!m && running)
			m = curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
	}
	while ((msg = curl_multi_info_read(h->multi, &queued)))
		if (msg->msg == CURLMSG_DONE) {
			*code = msg->data.result;
			return true;
		}
	*code = CURLE_FAILED_INIT;
	return false;
}

static int read_answer(struct http *h, CURLcode code, struct http_answer *a)
{
	curl_off_t seconds = 0;
	char *redirect = NULL;

	if (a->head_ended && a->head <= MAX_HEAD)
		curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &a->status);
	if (a->status < 200)
		a->status = 0;
	if (!a->status) {
		if (a->head > MAX_HEAD)
			strcpy(a->error, "its headers do not end");
		else if (!*a->error)
			strncat(a->error, curl_easy_strerror(code), sizeof(a->error) - 1);
		return 0;
	}
	curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds > 0)
		a->retry_after = (uint64_t)(seconds < MAX_RETRY_AFTER ? seconds : MAX_RETRY_AFTER) *
				 FUSEE_SECOND;
	curl_easy_getinfo(h->easy, CURLINFO_REDIRECT_URL, &redirect);
	if (redirect && !(a->redirect = strdup(redirect)))
		return -ENOMEM;
	return 0;
}

int http_request(struct http *h, const char *url, struct curl_slist *headers, struct fusee_str body,
		 struct http_answer *a)
{
	CURLcode code;
	int r;

	curl_easy_reset(h->easy);
	code = set_up(h, h->easy, url, headers, body, a);
	if (code)
		return fusee_fail(&h->self, -EINVAL, "libcurl refuses '%s': %s", h->shown,
				  curl_easy_strerror(code));
	if (curl_multi_add_handle(h->multi, h->easy))
		return -ENOMEM;
	a->cancelled = !perform(h, &code) && atomic_load(&h->cancelled);
	r = read_answer(h, code, a);
	curl_multi_remove_handle(h->multi, h->easy);
	/* the buffer is in *a, which the caller frees */
	curl_easy_setopt(h->easy, CURLOPT_ERRORBUFFER, NULL);
	return r;
}
