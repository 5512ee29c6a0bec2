/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its answer. */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "http.h"

#define HTTP_LINE 200 /* bytes of an answer's first line that are kept for messages */

struct http_answer {
	long status;              /* 0: no complete header came */
	uint64_t retry_after;     /* ns, 0: the answer has no Retry-After */
	char line[HTTP_LINE + 1]; /* the body's first line, printable characters only */
	char *redirect;           /* owned; an absolute URL, NULL: none */
	char error[CURL_ERROR_SIZE];
	bool cancelled;

	/* while the answer is received */
	uint64_t head, body; /* bytes received */
	uint32_t len;        /* bytes in line */
	bool head_ended, line_ended;
};

/* Sends one request to url and waits for its answer, or until h->cancelled is set. 0: *answer says
 * what came; -errno after host->fail(). *answer is zeroed by the caller, who calls
 * http_answer_fini() in any case. */
int http_request(struct http *h, const char *url, struct curl_slist *headers, struct fusee_str body,
		 struct http_answer *answer);
void http_answer_fini(struct http_answer *);
/* May a request with secrets for `from` be sent to `to`? True for the same scheme, server and port,
 * and from http on port 80 to https on port 443 of the same server. */
bool http_same_place(const char *from, const char *to);
#endif
