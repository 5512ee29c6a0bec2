/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parquet
/* A frame as a text of JSON. */
#include "test.h"

#include <fusee/parquet.h>

#include "frame.h"

static bool is(const struct fusee_bytes *t, const char *text)
{
	return t->len == strlen(text) && !memcmp(t->p, text, t->len);
}

TEST(members_that_are_not_empty)
{
	struct fusee_rows_frame f = {.function = fusee_text("a\"\\\n\x1f\xc3\xa9"),
				     .type = fusee_text("kernel"),
				     .line = 7,
				     .inlined = 1,
				     .flags = 3,
				     .address = INT64_MIN};
	struct fusee_bytes t = {0};

	CHECK(frame_put(&t, &f));
	CHECK(is(&t, "{\"function\":\"a\\\"\\\\\\u000a\\u001f\xc3\xa9\",\"line\":7,\"inlined\":1,"
		     "\"type\":\"kernel\",\"flags\":3,\"address\":-9223372036854775808}"));
	f = (struct fusee_rows_frame){0};
	CHECK(frame_put(&t, &f) && is(&t, "{}"));
	fusee_bytes_fini(&t);
}

/* Six texts of the longest kind, of which each byte is escaped, are a text that a column takes. */
TEST(longer_texts_are_truncated)
{
	char *bytes = malloc(FUSEE_PARQUET_MAX_TEXT);
	struct fusee_str s = {bytes, FUSEE_PARQUET_MAX_TEXT};
	struct fusee_rows_frame f = {s, s, s, s, s, s, -1, INT64_MIN, -1, 1, INT64_MIN};
	struct fusee_bytes t = {0};

	memset(bytes, 1, s.len);
	CHECK(!frame_put(&t, &f));
	CHECK(t.len < FUSEE_PARQUET_MAX_TEXT && t.len > FUSEE_PARQUET_MAX_TEXT / 2);
	CHECK(t.p[t.len - 1] == '}');
	for (size_t i = 0; i < s.len; i += 2)
		memcpy(bytes + i, "\xc3\xa9", 2);
	f = (struct fusee_rows_frame){.function = s};
	CHECK(!frame_put(&t, &f));
	CHECK(!memcmp(t.p + t.len - 4, "\xc3\xa9\"}", 4));
	fusee_bytes_fini(&t);
	free(bytes);
}
