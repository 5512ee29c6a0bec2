/* SPDX-License-Identifier: Apache-2.0 */
/* The query of a URL, "a=b&c=%20d". [any thread] */
#ifndef NET_HTTP_QUERY_H
#define NET_HTTP_QUERY_H

#include <stdint.h>

struct http_param {
	const char *name, *value; /* decoded, terminated; value "" without '=' */
};

/* Decodes the query in place; the parameters point into it, in its order. *n: their number. 0;
 * -EINVAL: a '%' without two hexadecimal digits, or with 00; -E2BIG: more than max parameters. */
int http_query_parse(char *query, struct http_param *params, uint32_t max, uint32_t *n);
#endif
