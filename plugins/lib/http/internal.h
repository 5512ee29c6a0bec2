/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the sources of this library. */
#ifndef HTTP_INTERNAL_H
#define HTTP_INTERNAL_H

#include <curl/curl.h>
#include <stdatomic.h>

#include <fusee/http.h>
#include <fusee/http_curl.h>

#define HTTP_HEAD 65536u /* bytes of an answer's headers */
#define HTTP_TENANT "X-Scope-OrgID"
#define HTTP_ID 16u /* bytes of a profile's id */

/* The received parts of one answer. */
struct http_receiver {
	char *head, *body; /* owned; buffers of HTTP_HEAD + 1 and FUSEE_HTTP_BODY + 1 bytes */
	char *into;        /* the request's buffer for the body of a 2xx; NULL: uses `body` too */
	uint64_t room;
	bool (*take)(void *arg, uint64_t n); /* of the request */
	void *take_arg;
	CURL *easy;
	size_t head_n, body_n;
	uint64_t head_bytes, body_bytes; /* received, of all headers and of the body */
	bool head_ended;
};

/* A part that need not be sent again: it was delivered, or its halves replace it. */
struct http_part {
	uint8_t id[HTTP_ID];
	bool halved;
};

struct fusee_http {
	const struct fusee_self *self;
	const struct fusee_http_options *options;
	const char *const *own;
	char *shown;

	CURLM *multi;
	CURL *easy;
	atomic_bool cancelled; /* set by any thread */
	struct http_receiver receiver;
	char error[CURL_ERROR_SIZE], why[FUSEE_HTTP_WHY];
	bool denied;    /* the last request was denied */
	char *redirect; /* owned; the absolute URL of the last answer's redirect; or NULL */

	/* the profile's id, and its parts */
	uint8_t of[HTTP_ID];
	struct http_part *parts; /* owned */
	uint32_t nparts;
	uint64_t cap;
};

/* ---- url.c ---- */

bool http_has(CURLU *, CURLUPart);
bool http_part_is(CURLU *, CURLUPart, const char *text); /* ignores case */
/* Whether a request with secrets for `from` may be sent to `to`. True for the same scheme, server
 * and port, and from http on port 80 to https on port 443 of the same server. */
bool http_same_place(const char *from, const char *to);
/* Appends to the path and the query of the url; NULL: nothing. The caller frees *ret. 0, -ENOMEM,
 * or -EINVAL. */
int http_url(const char *url, const char *path, const char *query, char **ret);

/* ---- check.c ---- */

/* Checks the options and sets h->shown. 0, or -errno after host->fail(). */
int http_check(struct fusee_http *h);

/* ---- headers.c ---- */

/* The headers of one request; the files with secrets are read at each call. 0, or -errno after
 * host->fail(). The caller frees *ret by http_headers_free(). */
int http_headers(struct fusee_http *h, const struct fusee_http_request *, struct curl_slist **ret);
/* Clears and frees the headers. NULL is valid. */
void http_headers_free(struct curl_slist *);

/* ---- request.c ---- */

/* Sends one request to url and waits for its answer. 0: *answer and h->redirect are set; -ECANCELED
 * or another -errno after host->fail(). */
int http_request(struct fusee_http *h, const char *url, struct curl_slist *headers,
		 const struct fusee_http_request *, struct fusee_str body,
		 struct fusee_http_answer *answer);

/* ---- judge.c ---- */

/* Calls host->denied() for a delivery, NULL: there is none, and sets h->denied. */
void http_denied(struct fusee_http *, struct fusee_sink_out *);

/* ---- gzip.c ---- */

/* The caller frees *ret. 0 or -ENOMEM. */
int http_gzip(struct fusee_str bytes, struct fusee_str *ret);
#endif
