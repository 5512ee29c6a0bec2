/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the options before anything is sent, and the headers that follow from them. */
#ifndef HTTP_CHECK_H
#define HTTP_CHECK_H

#include "http.h"

/* Checks the options and sets h->shown. 0, or -errno after host->fail(). */
int http_check(struct http *h);

/* Makes the headers of one request; the files with secrets are read at each call. 0, or -errno
 * after host->fail(). *ret is the caller's, for http_headers_free(). */
int http_headers(struct http *h, const struct fusee_profile *, struct curl_slist **ret);
/* Clears and frees the headers. NULL is fine. */
void http_headers_free(struct curl_slist *);
#endif
