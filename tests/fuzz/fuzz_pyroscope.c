// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/sinks/pyroscope/answer.c plugins/lib/http/judge.c plugins/lib/http/explain.c plugins/lib/json/member.c plugins/lib/json/place.c
// flags: -Iplugins/sinks/pyroscope
// libs: -lyajl -lcurl
// clang-format on
// What Pyroscope answers: JSON or a text, of which one clean line and a verdict are made.
#include "fuzz.h"

#include "push.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long statuses[] = {200, 400, 413, 422, 429, 500, 501, 503};
	static char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
	struct fusee_http_answer a = {.error = ""};
	char words[FUSEE_HTTP_WORDS];
	enum fusee_http_verdict verdict;

	if (!size)
		return 0;
	a.status = statuses[data[0] % 8];
	a.head = (struct fusee_str){head, data[0] & 8 ? sizeof(head) - 1 : 0};
	a.body = (struct fusee_str){(const char *)data + 1, size - 1};
	verdict = push_verdict(&a, words);
	if ((verdict == FUSEE_HTTP_TAKEN) != (a.status == 200 && !fusee_http_is_page(&a)) ||
	    (a.status == 503 && verdict != FUSEE_HTTP_LATER) ||
	    strnlen(words, sizeof(words)) == sizeof(words))
		abort();
	for (const char *p = words; *p; p++)
		if (*p < ' ' || *p > '~')
			abort();
	return 0;
}
