// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/base
#include "base/json.h"
#include "test.h"

/* An object with all kinds of values. */
static void fill(struct json *j)
{
	struct fusee_label labels[] = {{.key = {"a\n", 2}, .str = {"<", 1}},
				       {.key = {"b", 1}, .str = {"", 0}}};
	struct buf empty = {0};

	json_open(j, NULL);
	json_list(j, "none");
	json_end(j);
	json_list(j, "list");
	json_int(j, NULL, INT64_MIN);
	json_uint(j, NULL, UINT64_MAX);
	json_open(j, NULL);
	json_end(j);
	json_end(j);
	json_labels(j, "labels", labels, 2);
	json_text(json_line(j, 1), "null", NULL);
	json_buf(j, "empty", &empty);
	json_flag(j, "yes", true);
	json_printf(j, "number", "%.1f", 0.5);
	json_end(json_line(j, 0));
}

static const char *written(bool spaced)
{
	static char text[400];
	struct buf b = {0};
	struct json j = {.out = &b, .spaced = spaced};

	fill(&j);
	CHECK(!b.error && b.len < sizeof(text));
	snprintf(text, sizeof(text), "%.*s", (int)b.len, b.p);
	buf_fini(&b);
	return text;
}

TEST(compact)
{
	CHECK_STR(written(false),
		  "{\"none\":[],\"list\":[-9223372036854775808,18446744073709551615,{}],"
		  "\"labels\":{\"a\\u000a\":\"\\u003c\",\"b\":\"\"},\n"
		  " \"null\":null,\"empty\":\"\",\"yes\":true,\"number\":0.5\n}");
}

TEST(spaced)
{
	CHECK_STR(written(true),
		  "{\"none\": [], \"list\": [-9223372036854775808, 18446744073709551615, {}], "
		  "\"labels\": {\"a\\u000a\": \"\\u003c\", \"b\": \"\"},\n"
		  " \"null\": null, \"empty\": \"\", \"yes\": true, \"number\": 0.5\n}");
}

TEST(errors_stay)
{
	struct buf b = {0}, failed = {.error = -12};
	struct json j = {.out = &b};

	json_buf(&j, NULL, &failed);
	CHECK_INT(b.error, -12);
	buf_fini(&b);
}
