// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/sinks/otlp/answer.c plugins/sinks/otlp/proto.c plugins/lib/proto/read.c plugins/lib/proto/write.c plugins/sinks/parca/answer.c plugins/sinks/parca/debuginfo.c
// sources: plugins/lib/http/judge.c plugins/lib/http/explain.c plugins/lib/json/member.c plugins/lib/json/place.c
// flags: -Iplugins/sinks/otlp -Iplugins/sinks/parca
// libs: -lyajl -lcurl
// clang-format on
// What a receiver of OTLP and Parca answer, in protobuf, gRPC's frames and JSON: a verdict and one
// clean line are made.
#include "fuzz.h"

#include "answer.h"
#include "debuginfo.h"
#include "write.h"
#include "server_words.h"

/* The message of the answer, or all of it. */
static void read_messages(const struct fusee_http_answer *http)
{
	char reason[DEBUGINFO_MAX_REASON];
	struct debuginfo_instructions how;
	struct fusee_str message;
	bool should;

	if (!write_message(http, &message))
		message = http->body;
	debuginfo_read_should(message, &should, reason);
	if (strlen(reason) >= sizeof(reason))
		abort();
	if (debuginfo_read_instructions(message, &how) &&
	    (strlen(how.upload_id) >= sizeof(how.upload_id) || strlen(how.url) >= sizeof(how.url)))
		abort();
	if (write_code(http) > 999)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long statuses[] = {200, 400, 413, 429, 500, 501, 503, 0};
	struct fusee_http_answer http = {.error = ""};
	char words[FUSEE_HTTP_WORDS], *body;
	enum fusee_http_verdict grpc, json;
	struct answer otlp;

	if (size < 2)
		return 0;
	body = body_of(data + 2, size - 2);
	if (!body)
		return 0;
	http.status = statuses[data[0] % 8];
	http.body = (struct fusee_str){body, size - 2};
	if (data[0] & 8) /* else it is the head too, of gRPC's own headers */
		http.head = fusee_text(
			"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n");
	else
		http.head = http.body;
	answer_read(&http, data[1], &otlp);
	check_words(otlp.words, sizeof(otlp.words));
	if (otlp.rejected > data[1])
		abort();
	grpc = write_verdict(WRITE_GRPC_WEB, &http, words);
	check_words(words, sizeof(words));
	json = write_verdict(WRITE_JSON, &http, words);
	check_words(words, sizeof(words));
	read_messages(&http);
	if (http.status != 200 && otlp.verdict == FUSEE_HTTP_TAKEN)
		abort();
	if (!http.body.len && json == FUSEE_HTTP_TAKEN)
		abort();
	if (!http.body.len && !(data[0] & 8) && grpc == FUSEE_HTTP_TAKEN)
		abort();
	free(body);
	return 0;
}
