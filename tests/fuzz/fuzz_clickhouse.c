// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/sinks/clickhouse/answer.c plugins/sinks/clickhouse/layout.c plugins/sinks/clickhouse/encode.c
// sources: plugins/sinks/clickhouse/body.c plugins/lib/http/judge.c plugins/lib/http/explain.c
// flags: -Iplugins/sinks/clickhouse
// libs: -lcurl
// clang-format on
// What ClickHouse answers: a verdict and one clean line are made of it, and of names and types of
// columns a layout by which rows can be written.
#include "fuzz.h"

#include "answer.h"
#include "encode.h"
#include "server_words.h"

static void write_rows(enum table t, const struct layout *l)
{
	static const struct fusee_str strings[] = {{"", 0}};
	static const struct fusee_profile p = {.strings = FUSEE_TABLE(strings)};
	static const struct fusee_rows_label labels[] = {{FUSEE_TEXT("k"), FUSEE_TEXT("v")}};
	static const struct fusee_rows_frame frames[] = {{.line = 1}, {.line = 2}};
	static const struct fusee_rows_sample sample = {.labels = FUSEE_TABLE(labels)};
	static const struct fusee_rows_stack stack = {.frames = FUSEE_TABLE(frames)};
	struct fusee_bytes b = {.most = 1000};

	if (t == SAMPLES ? encode_sample(&b, l, &p, &sample, 1) : encode_stack(&b, l, &p, &stack))
		abort();
	fusee_bytes_fini(&b);
}

static void read_columns(enum table t, struct fusee_str lines)
{
	char why[300];
	struct layout l;
	int r = layout_read(t, "d", "t", lines, &l, why, sizeof(why));

	check_words(why, sizeof(why));
	if (l.n > FIELDS || (r && !*why))
		abort();
	if (strnlen(l.insert, sizeof(l.insert)) == sizeof(l.insert))
		abort();
	for (uint32_t i = 0; i < l.n; i++)
		if (l.at[i].field >= FIELDS || l.at[i].size > 9)
			abort();
	if (!r && l.n)
		write_rows(t, &l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long statuses[] = {200, 400, 404, 413, 429, 500, 503, 0};
	struct fusee_http_answer http = {.error = "", .head = {"", 0}};
	struct answer a;
	char *body;

	if (size < 1)
		return 0;
	body = body_of(data + 1, size - 1);
	if (!body)
		return 0;
	http.status = statuses[data[0] % 8];
	http.body = (struct fusee_str){body, size - 1};
	if (data[0] & 8)
		http.head = http.body;
	http.complete = !(data[0] & 128);
	answer_read(&http, data[0] & 16, &a);
	check_words(a.words, sizeof(a.words));
	if (a.verdict == FUSEE_HTTP_TAKEN && (http.status != 200 || a.code))
		abort();
	if (a.verdict == FUSEE_HTTP_TAKEN && !http.complete && http.body.len < FUSEE_HTTP_BODY)
		abort();
	read_columns(data[0] & 32 ? SAMPLES : STACKS, http.body);
	free(body);
	return 0;
}
