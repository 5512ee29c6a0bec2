// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/lib/http/request.c plugins/lib/http/url.c plugins/lib/http/judge.c
// sources: plugins/lib/http/setup.c plugins/lib/http/explain.c
// flags: -Iplugins/lib/http -Wl,--wrap=curl_multi_add_handle
// libs: -lcurl
// clang-format on
// What a server answers to a sink: a status, a bounded pause, headers, the beginning of the body,
// one clean line and a place.
#include "fuzz.h"
#include <sys/socket.h>

#include "internal.h"

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

static void check(const struct fusee_http *h, const struct fusee_http_answer *a)
{
	char words[FUSEE_HTTP_WORDS];
	struct fusee_str value;

	if (a->status < 0 || (a->status && a->status < 200) || a->retry_after > HOUR ||
	    a->head.len > HTTP_HEAD || a->body.len > FUSEE_HTTP_BODY)
		abort();
	fusee_http_words(words, a->body);
	for (const char *p = words; *p; p++)
		if (*p < ' ' || *p > '~')
			abort();
	if (fusee_http_header(a, "content-type", &value) &&
	    (value.p < a->head.p || value.p + value.len > a->head.p + a->head.len))
		abort();
	if (h->redirect)
		http_same_place("http://192.0.2.1/x", h->redirect);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fusee_self self = {.host = &host};
	static const struct fusee_http_options options = {.ca_file = "",
							  .cert_file = "",
							  .key_file = "",
							  .proxy = "",
							  .timeout = FUSEE_SECOND,
							  .connect_timeout = FUSEE_SECOND};
	static struct fusee_http h = {.self = &self, .options = &options, .shown = (char *)"x"};
	struct fusee_http_request q = {.flags = size % 2 ? FUSEE_HTTP_GZIP : 0};
	struct fusee_http_answer a;
	int pair[2];

	if (!h.multi) {
		curl_global_init(CURL_GLOBAL_DEFAULT);
		h.multi = curl_multi_init();
		h.easy = curl_easy_init();
		h.receiver.head = malloc(HTTP_HEAD + 1);
		h.receiver.body = malloc(FUSEE_HTTP_BODY + 1);
	}
	if (size > 100000)
		return 0;
	if (!h.easy || !h.receiver.head || !h.receiver.body ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ||
	    send(pair[0], data, size, MSG_NOSIGNAL) != (ssize_t)size)
		abort();
	shutdown(pair[0], SHUT_WR);
	answering = pair[1];
	if (!http_request(&h, "http://192.0.2.1/x", NULL, &q, (struct fusee_str){"body", 4}, &a))
		check(&h, &a);
	close(pair[0]);
	return 0;
}
