/* SPDX-License-Identifier: Apache-2.0 */
/* One instance of the http sink. http.c calls check.c and request.c, which don't call each other.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <fusee/helpers.h>

enum http_method { HTTP_POST, HTTP_PUT };

struct http {
	struct fusee_self self;

	/* the options, as http.c describes them */
	const char *url, *content_type, *bearer_file, *user, *password_file;
	const char *ca_file, *cert_file, *key_file, *proxy;
	struct fusee_table headers;
	int64_t method; /* enum http_method */
	uint64_t timeout, connect_timeout;
	uint8_t insecure;

	char *shown; /* owned; the url for messages: without its query, which may hold a key */
	CURLM *multi;
	CURL *easy;
	atomic_bool cancelled; /* set by any thread */
};
#endif
