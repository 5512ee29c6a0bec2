/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/http_curl.h - libcurl in callbacks that never wait, for plugins such as discoveries: the
 * host watches libcurl's descriptors. Part of the library of <fusee/http.h>. A plugin makes its
 * requests by libcurl itself; this header sets what all of them must have.
 */
#ifndef FUSEE_HTTP_CURL_H
#define FUSEE_HTTP_CURL_H

#include <curl/curl.h>
#include <stdbool.h>

#include <fusee/helpers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- requests under way, for the control thread ---- */

struct fusee_http_loop {
	const struct fusee_self *self;
	CURLM *multi;
	uint64_t due_ns; /* when fusee_http_loop_run() is to be called (CLOCK_MONOTONIC), at the
			    latest; UINT64_MAX: never */
	uint64_t now_ns; /* of the call that runs */
};

/* The loop must stay where it is. 0 or -ENOMEM. */
int fusee_http_loop_init(struct fusee_http_loop *, const struct fusee_self *);
void fusee_http_loop_fini(struct fusee_http_loop *); /* after its requests; zeroed is valid */
/* Begins a request. 0 or -ENOMEM. */
int fusee_http_loop_add(struct fusee_http_loop *, CURL *, uint64_t now_ns);
/* The host reports events (of epoll) for fd, or a deadline has passed (fd -1). ended() is called
 * for each request that has ended, and removes it from the loop. */
void fusee_http_loop_run(struct fusee_http_loop *, int fd, uint32_t events, uint64_t now_ns,
			 void (*ended)(void *arg, CURL *, CURLcode), void *arg);

/* Lets a timerfd of CLOCK_MONOTONIC expire at that time, ns; UINT64_MAX: never. 0 or -errno. */
int fusee_http_loop_arm(int timer, uint64_t at_ns);

/* ---- what each request has ---- */

/* No redirects, no scheme but http and https, no proxy but this one ("" for none), no signals. */
CURLcode fusee_http_set_limits(CURL *, uint64_t connect_ns, const char *proxy);

/* Files or bytes (PEM); files count first. NULL or "" and no bytes: not set. */
struct fusee_http_tls {
	const char *ca_file, *cert_file, *key_file;
	struct fusee_str ca, cert, key; /* borrowed until the request has ended */
	bool insecure;                  /* the server's certificate is not checked */
};

/* TLS 1.2 at least. With ca_file or ca the system's certificates do not count. They are read for
 * each connection. */
CURLcode fusee_http_set_tls(CURL *, const struct fusee_http_tls *);

#define FUSEE_HTTP_SECRET 16384 /* bytes of a token or password with its NUL, at most */
#define FUSEE_HTTP_WHY 256      /* bytes of a reason with its NUL */

/* Reads a file with one line, a token or password. The length, or -errno and why. The caller clears
 * buf. */
int fusee_http_secret(const struct fusee_self *, const char *path, char buf[FUSEE_HTTP_SECRET],
		      char why[FUSEE_HTTP_WHY]);

/* ---- answers ---- */

/* A text of a server's, with '?' in place of control characters, truncated. */
void fusee_http_clean(char *to, size_t size, const char *text, size_t n);
/* A line of a header callback. true: it is this header; *value is without blanks around it. */
bool fusee_http_is_header(struct fusee_str line, const char *name, struct fusee_str *value);
/* Why a request that failed has no answer, without numbers that change. error: of
 * CURLOPT_ERRORBUFFER; NULL: none. */
void fusee_http_explain(CURL *, CURLcode, const char *error, char why[FUSEE_HTTP_WHY]);
/* Retry-After of the answer, ns; 0: none; at most that many seconds. */
uint64_t fusee_http_retry_after(CURL *, uint64_t most_seconds);

#ifdef __cplusplus
}
#endif
#endif
