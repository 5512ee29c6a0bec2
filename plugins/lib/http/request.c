/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request by libcurl. Keeps a bounded part of the answer; the rest of the body is not read, and
 * the connection is closed.
 */
#include <stdlib.h>

#include <fusee/http_curl.h>

#include "internal.h"

#define MS 1000000ull /* ns */
/* The cap for Retry-After, in seconds: a server's mistake must not stop a sink for a day. */
#define MAX_RETRY_AFTER 3600
#define POLL_MS 1000

/* ---- receiving ---- */

/* Keeps the headers of the last answer, for example after a "100 Continue". */
static size_t take_head(char *p, size_t size, size_t n, void *arg)
{
	struct http_receiver *r = arg;

	n *= size;
	r->head_bytes += n;
	if (r->head_bytes > HTTP_HEAD)
		return 0;
	if (n >= 5 && !memcmp(p, "HTTP/", 5)) {
		r->head_ended = false;
		r->head_n = 0;
	} else if (n && (*p == '\r' || *p == '\n')) {
		r->head_ended = true;
	}
	memcpy(r->head + r->head_n, p, n);
	r->head_n += n;
	return n;
}

/* Whether the body goes into the request's buffer; an error's body does not. */
static bool is_into(const struct http_receiver *r)
{
	long status = 0;

	if (r->into)
		curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	return status / 100 == 2;
}

static size_t take_body(char *p, size_t size, size_t n, void *arg)
{
	struct http_receiver *r = arg;
	bool into = is_into(r);
	uint64_t most = into ? r->room : FUSEE_HTTP_BODY, room = most - r->body_n, kept;

	n *= size;
	r->body_bytes += n;
	kept = n < room ? n : room;
	if (into && r->take && !r->take(r->take_arg, kept))
		return 0;
	memcpy((into ? r->into : r->body) + r->body_n, p, kept);
	r->body_n += kept;
	return r->body_bytes > most ? 0 : n;
}

/* ---- setting up ---- */

/* Sets an option unless an earlier SET() has failed; `code` keeps the first error. */
#define SET(option, value) (code = code ? code : curl_easy_setopt(c, option, value))

static CURLcode set_tls(const struct fusee_http_options *o, bool other, CURL *c)
{
	const struct fusee_http_tls tls = {.ca_file = o->ca_file,
					   .cert_file = other ? NULL : o->cert_file,
					   .key_file = other ? NULL : o->key_file,
					   .insecure = o->insecure};

	return fusee_http_set_tls(c, &tls);
}

static size_t give_body(char *to, size_t size, size_t n, void *arg)
{
	const struct fusee_http_source *s = arg;
	int64_t got = s->read(s->arg, to, size * n);

	return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

/* Uses a new connection, as an open one may have been closed by the server, and libcurl would then
 * send the body again. The connection is not reused either: requests that are not gRPC's would use
 * its HTTP/2. */
static CURLcode set_source(CURL *c, const struct fusee_http_source *s, uint64_t timeout)
{
	uint64_t ms = timeout / MS, rate = s->rate ? s->rate : 1;
	CURLcode code = CURLE_OK;

	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)s->len);
	SET(CURLOPT_READFUNCTION, give_body);
	SET(CURLOPT_READDATA, s);
	SET(CURLOPT_FRESH_CONNECT, 1L);
	SET(CURLOPT_FORBID_REUSE, 1L);
	SET(CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)rate);
	SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
	SET(CURLOPT_LOW_SPEED_TIME, (long)(ms / 1000 + 1));
	SET(CURLOPT_TIMEOUT_MS, (long)(ms + s->len / rate * 2000));
	return code;
}

static CURLcode set_body(CURL *c, const struct fusee_http_request *q, struct fusee_str body,
			 uint64_t timeout)
{
	CURLcode code = CURLE_OK;

	if (q->source)
		return set_source(c, q->source, timeout);
	SET(CURLOPT_TIMEOUT_MS, (long)(timeout / MS));
	if (q->flags & FUSEE_HTTP_GET) {
		SET(CURLOPT_HTTPGET, 1L);
		return code;
	}
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	SET(CURLOPT_POSTFIELDS, body.p ? body.p : "");
	return code;
}

/* Over TLS both sides agree on HTTP/2, without TLS the server must know. */
static CURLcode set_version(CURL *c, const struct fusee_http_request *q, const char *url)
{
	bool plain = fusee_http_url_flags(url) & FUSEE_HTTP_URL_PLAIN;
	CURLcode code = CURLE_OK;

	if (q->flags & FUSEE_HTTP_GRPC)
		SET(CURLOPT_HTTP_VERSION,
		    (long)(plain ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_2TLS));
	return code;
}

static CURLcode set_up(struct fusee_http *h, CURL *c, const char *url, struct curl_slist *headers,
		       const struct fusee_http_request *q, struct fusee_str body)
{
	CURLcode code = fusee_http_set_limits(c, h->options->connect_timeout, h->options->proxy);

	if (!code)
		code = set_tls(h->options, q->url, c);
	if (!code)
		code = set_body(c, q, body, h->options->timeout);
	if (!code)
		code = set_version(c, q, url);
	/* an open connection still uses the old certificate of the file */
	if (h->denied && *h->options->cert_file)
		SET(CURLOPT_FRESH_CONNECT, 1L);
	SET(CURLOPT_URL, url);
	SET(CURLOPT_HTTPHEADER, headers);
	if (q->flags & FUSEE_HTTP_PUT)
		SET(CURLOPT_CUSTOMREQUEST, "PUT");
	if (q->flags & FUSEE_HTTP_DELETE)
		SET(CURLOPT_CUSTOMREQUEST, "DELETE");
	if (q->flags & FUSEE_HTTP_GZIP)
		SET(CURLOPT_ACCEPT_ENCODING, "gzip");
	SET(CURLOPT_ERRORBUFFER, h->error);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(CURLOPT_HEADERFUNCTION, take_head);
	SET(CURLOPT_HEADERDATA, &h->receiver);
	SET(CURLOPT_WRITEFUNCTION, take_body);
	SET(CURLOPT_WRITEDATA, &h->receiver);
	return code;
}

/* ---- the request ---- */

/* True: the request has ended with *code; false: it was cancelled or could not begin. */
static bool perform(struct fusee_http *h, CURLcode *code)
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

static int read_answer(struct fusee_http *h, CURLcode code, struct fusee_http_answer *a)
{
	struct http_receiver *r = &h->receiver;
	char *redirect = NULL;

	if (r->head_ended && r->head_bytes <= HTTP_HEAD)
		curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &a->status);
	if (a->status < 200)
		a->status = 0;
	a->error = "";
	if (!a->status) {
		/* without an error code, the connection ended within the headers */
		fusee_http_explain(h->easy, code ? code : CURLE_PARTIAL_FILE, h->error, h->why);
		a->error = r->head_bytes > HTTP_HEAD ? "its headers do not end" : h->why;
		return 0;
	}
	r->head[r->head_n] = '\0';
	a->head = (struct fusee_str){r->head, r->head_n};
	a->body = (struct fusee_str){is_into(r) ? r->into : r->body, r->body_n};
	if (!is_into(r))
		r->body[r->body_n] = '\0';
	a->complete = code == CURLE_OK;
	a->retry_after = fusee_http_retry_after(h->easy, MAX_RETRY_AFTER);
	curl_easy_getinfo(h->easy, CURLINFO_REDIRECT_URL, &redirect);
	if (redirect && !(h->redirect = strdup(redirect)))
		return fusee_fail(h->self, -ENOMEM, "no memory for an answer");
	return 0;
}

int http_request(struct fusee_http *h, const char *url, struct curl_slist *headers,
		 const struct fusee_http_request *q, struct fusee_str body,
		 struct fusee_http_answer *a)
{
	struct http_receiver *r = &h->receiver;
	CURLcode code;
	bool ended;
	int err;

	*a = (struct fusee_http_answer){0};
	*r = (struct http_receiver){.head = r->head,
				    .body = r->body,
				    .into = q->into,
				    .room = q->room,
				    .take = q->take,
				    .take_arg = q->take_arg,
				    .easy = h->easy};
	*h->error = '\0';
	free(h->redirect);
	h->redirect = NULL;
	curl_easy_reset(h->easy);
	code = set_up(h, h->easy, url, headers, q, body);
	h->denied = false;
	if (code)
		return fusee_fail(h->self, -EINVAL, "libcurl refuses '%s': %s", h->shown,
				  curl_easy_strerror(code));
	if (curl_multi_add_handle(h->multi, h->easy))
		return fusee_fail(h->self, -ENOMEM, "no memory for a request");
	ended = perform(h, &code);
	err = read_answer(h, code, a);
	curl_multi_remove_handle(h->multi, h->easy);
	if (!ended && atomic_load(&h->cancelled))
		return fusee_fail(h->self, -ECANCELED, "ended while waiting for '%s'", h->shown);
	return err;
}
