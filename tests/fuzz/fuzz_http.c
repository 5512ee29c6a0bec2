// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/net/http.c core/net/http_query.c core/net/http_host.c core/net/server.c core/net/listener.c core/net/loop.c
// sources: core/base/buf.c core/base/clock.c core/base/utf8.c core/base/metrics.c
// libs: -lpthread
// clang-format on
// What a client of /metrics may send: one answer at most, of a length that is true.
#include "client.h"
#include "net/http.h"
#include "net/http_query.h"

static int get(void *arg, struct buf *body)
{
	(void)arg;
	return buf_str(body, "text\n") ? 500 : 200;
}

/* Each parameter is in the bytes of the query. */
static void begin(void *arg, struct http_request *request, char *query)
{
	const char *end = query + strlen(query);
	struct http_param params[8];
	struct http_answer a = {.status = 200, .type = "text/plain", .body = "q\n", .len = 2};
	uint32_t n = 0;

	(void)arg;
	a.status = http_query_parse(query, params, 8, &n) ? 400 : 200;
	for (uint32_t i = 0; a.status == 200 && i < n; i++)
		if (params[i].name < query || params[i].value < params[i].name ||
		    params[i].value + strlen(params[i].value) > end)
			abort();
	http_answer(request, &a);
}

static bool permit(void *arg, const char *path)
{
	(void)arg;
	return strcmp(path, "/no") != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct http_page pages[] = {
		{"/m", "text/plain", get, NULL}, {"/q", NULL, NULL, begin}, {0}};
	const struct http_options options = {.listen = place, .pages = pages, .permit = permit};
	static struct loop *loop;
	static struct http *http;
	struct buf heard;
	char *text, *length, *body;

	if (!loop && (loop_new(&loop) || http_new(&http, loop, &options, &text)))
		abort();
	fuzz_talk(loop, place + 5, data, size, &heard);
	if (heard.len) {
		buf_add(&heard, "", 1);
		length = heard.p ? strstr(heard.p, "\r\nContent-Length: ") : NULL;
		body = length ? strstr(length, "\r\n\r\n") : NULL;
		if (strncmp(heard.p, "HTTP/1.1 ", 9) || !body ||
		    (body[4] && strtoul(length + 18, NULL, 10) != strlen(body + 4)))
			abort();
	}
	buf_fini(&heard);
	return 0;
}
