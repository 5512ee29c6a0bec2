/* SPDX-License-Identifier: Apache-2.0 */
/* The Host of a request. A page in a browser can send requests to loopback under a name of its own
 * (DNS rebinding); only Host distinguishes them from a scraper's. [any thread] */
#ifndef NET_HTTP_HOST_H
#define NET_HTTP_HOST_H

#include <fusee/plugin.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum http_host {
	HTTP_HOST_GOOD,
	HTTP_HOST_FOREIGN, /* a host that is not this server's */
	HTTP_HOST_WRONG,   /* no host at all, or two Host lines */
};

/* Judges the head of a request, with the empty line at its end. These are good: no Host or an empty
 * Host, which no browser sends; localhost and names below it; a loopback address; the address that
 * the client connected to (`local`); this machine's name; and `hosts`, a table of struct fusee_str
 * with terminated texts, of which "*" is any. */
enum http_host http_host_check(const char *head, size_t len, const struct sockaddr *local,
			       const struct fusee_table *hosts);
/* Whether the request has no Origin, or that of a page which has the request's Host. */
bool http_origin_is_own(const char *head, size_t len);
#endif
