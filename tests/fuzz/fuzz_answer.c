// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/sinks/http/request.c
// flags: -Iplugins/sinks/http -Wl,--wrap=curl_multi_add_handle
// libs: -lcurl
// clang-format on
// What a server answers to the http sink: a status, a bounded pause, one clean line and a place are
// all that is read of it.
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
CURLMcode __wrap_curl_multi_add_handle(CURLM *m, CURL *c);
CURLMcode __real_curl_multi_add_handle(CURLM *m, CURL *c);

#define HOUR (3600 * FUSEE_SECOND)

static int answering;

static curl_socket_t connected(void *arg, curlsocktype purpose, struct curl_sockaddr *at)
{
	(void)arg;
	(void)purpose;
	(void)at;
	return answering;
}

static int is_connected(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	(void)arg;
	(void)fd;
	(void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

/* The connection leads to a socket that has the answer in it. */
CURLMcode __wrap_curl_multi_add_handle(CURLM *m, CURL *c)
{
	curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, connected);
	curl_easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, is_connected);
	curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
	return __real_curl_multi_add_handle(m, c);
}

static int fail(struct fusee_instance *in, int err, const char *text)
{
	(void)in;
	(void)text;
	return err;
}

static const struct fusee_host host = {.size = sizeof(host), .fail = fail};

static void check(const struct http_answer *a)
{
	if (a->status < 0 || (a->status && a->status < 200) || a->retry_after > HOUR ||
	    strnlen(a->line, sizeof(a->line)) == sizeof(a->line))
		abort();
	for (const char *p = a->line; *p; p++)
		if (*p < ' ' || *p > '~')
			abort();
	if (a->redirect)
		http_same_place("http://192.0.2.1/x", a->redirect);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http h = {.self.host = &host,
				.shown = (char *)"x",
				.ca_file = "",
				.cert_file = "",
				.key_file = "",
				.proxy = "",
				.timeout = FUSEE_SECOND,
				.connect_timeout = FUSEE_SECOND};
	struct http_answer a = {0};
	int pair[2];

	if (!h.multi) {
		curl_global_init(CURL_GLOBAL_DEFAULT);
		h.multi = curl_multi_init();
		h.easy = curl_easy_init();
	}
	if (size > 100000)
		return 0;
	if (!h.easy || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ||
	    send(pair[0], data, size, MSG_NOSIGNAL) != (ssize_t)size)
		abort();
	shutdown(pair[0], SHUT_WR);
	answering = pair[1];
	http_request(&h, "http://192.0.2.1/x", NULL, (struct fusee_str){"body", 4}, &a);
	check(&a);
	http_answer_fini(&a);
	close(pair[0]);
	return 0;
}
