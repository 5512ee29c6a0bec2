/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <fusee/plugin.h>

enum http_method { HTTP_POST, HTTP_PUT };

#define HTTP_LINE 200 /* of an answer's first line, kept for the sentence about it */

struct http {
	const char *url, *content_type, *bearer_file, *user, *password_file;
	const char *ca_file, *cert_file, *key_file, *proxy;
	struct fusee_table headers;
	int64_t method;
	uint64_t timeout, connect_timeout;
	uint8_t insecure;

	struct fusee_instance *in;
	const struct fusee_host *host;
	char *shown; /* the url without its query, which may hold a key */
	CURLM *multi;
	CURL *easy;
	atomic_bool cancelled;
};

/* What came back, as far as it came. */
struct answer {
	long status;              /* 0: no answer, its headers never ended */
	uint64_t retry_after;     /* ns, 0: not named */
	char line[HTTP_LINE + 1]; /* the body's first line, printable */
	char *redirect;           /* absolute URL, NULL: none; owned */
	char error[CURL_ERROR_SIZE];
	bool cancelled;

	/* while it comes */
	uint64_t head, body; /* bytes */
	uint32_t len;
	bool head_ended, line_ended;
};

/* 0, or -errno with host->fail(). */
int http_check(struct http *);
__attribute__((format(printf, 3, 4))) int http_fail(struct http *, int err, const char *format,
						    ...);

/* The headers of a request; secrets are read now. 0, or -errno with host->fail(). */
int http_headers(struct http *, const struct fusee_profile *, struct curl_slist **ret);
void http_headers_free(struct curl_slist *);

/* One request to url. 0: see answer, which answer_fini() ends in any case; -errno with
 * host->fail(). */
int http_request(struct http *, const char *url, struct curl_slist *headers, struct fusee_str body,
		 struct answer *);
void answer_fini(struct answer *);
/* May a request with our secrets be sent on from one to the other? */
bool http_same_place(const char *from, const char *to);
#endif
