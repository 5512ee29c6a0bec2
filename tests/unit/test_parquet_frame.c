/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/parquet
/* A frame's text, as sink.parquet writes it and as anybody could. */

#include "parquet/internal/frame.h"
#include "test.h"

#define ALL                                                                                  \
	"{\"function\":\"a \\\"b\\\\c\\u001f\\u000a\xc3\xa9\",\"file\":\"f.c\",\"line\":12," \
	"\"mapping\":\"/"                                                                    \
	"m\",\"build_id\":\"ab\",\"inlined\":1,\"type\":\"native\",\"start_line\":9,"        \
	"\"language\":\"ruby\",\"flags\":65536,\"address\":-9223372036854775808}"

/* The text has no bytes behind it that could be read. */
static int frame_read(const char *text, size_t len, struct parquet_frame *f, struct buf *room)
{
	char *copy = malloc(len + 1);
	int r;

	memcpy(copy, text, len);
	copy = realloc(copy, len ? len : 1);
	r = parquet_frame_read(f, (struct fusee_str){copy, len}, room);
	free(copy);
	return r;
}

static bool is(struct fusee_str s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.p, text, s.len);
}

TEST(all_members)
{
	struct parquet_frame f;
	struct fusee_str name;
	struct buf room = {0};

	CHECK_INT(parquet_frame_read(&f, (struct fusee_str){ALL, strlen(ALL)}, &room), 0);
	CHECK(is(f.texts[FRAME_FUNCTION], "a \"b\\c\x1f\n\xc3\xa9"));
	CHECK(is(f.texts[FRAME_FILE], "f.c") && is(f.texts[FRAME_MAPPING], "/m"));
	CHECK(is(f.texts[FRAME_BUILD_ID], "ab") && is(f.texts[FRAME_TYPE], "native"));
	CHECK(is(f.texts[FRAME_LANGUAGE], "ruby"));
	CHECK_INT(f.numbers[FRAME_LINE], 12);
	CHECK_INT(f.numbers[FRAME_INLINED], 1);
	CHECK_INT(f.numbers[FRAME_START_LINE], 9);
	CHECK_INT(f.numbers[FRAME_FLAGS], 65536);
	CHECK(f.numbers[FRAME_ADDRESS] == INT64_MIN);
	CHECK_INT(parquet_frame_function(&name, (struct fusee_str){ALL, strlen(ALL)}, &room), 0);
	CHECK(is(name, "a \"b\\c\x1f\n\xc3\xa9"));
	CHECK_INT(parquet_frame_read(&f, (struct fusee_str){"{}", 2}, &room), 0);
	CHECK(!f.texts[FRAME_FUNCTION].len && !f.numbers[FRAME_ADDRESS]);
	CHECK_INT(parquet_frame_function(&name, (struct fusee_str){"{}", 2}, &room), 0);
	CHECK(!name.len);
	buf_fini(&room);
}

TEST(what_is_none)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{} ",
		"{,}",
		"{\"line\":1,}",
		"{\"line\":}",
		"{\"line\":-}",
		"{\"line\":1.5}",
		"{\"line\":9223372036854775808}",
		"{\"line\":1\"flags\":1}",
		"{\"flags\":1,\"line\":1}",
		"{\"line\":1,\"line\":1}",
		"{\"function\":1}",
		"{\"function\":\"a}",
		"{\"function\":\"a\\\"}",
		"{\"function\":\"\\n\"}",
		"{\"function\":\"\\u0041\"}",
		"{\"function\":\"\\u00\"}",
		"{\"other\":1}",
	};
	struct parquet_frame f;
	struct buf room = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (frame_read(bad[i], strlen(bad[i]), &f, &room) != -EINVAL)
			test_fail(__FILE__, __LINE__, "'%s' is a frame", bad[i]);
	for (size_t len = 0; len < strlen(ALL); len++)
		CHECK_INT(frame_read(ALL, len, &f, &room), -EINVAL);
	CHECK_INT(frame_read(ALL, strlen(ALL), &f, &room), 0);
	buf_fini(&room);
}
