/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/json
#include "test.h"

#include <fusee/helpers.h>
#include <fusee/json.h>

static const char *member(const char *json, const char *key)
{
	static char text[16];

	return fusee_json_member(fusee_text(json), key, text, sizeof(text)) ? text : NULL;
}

TEST(members)
{
	CHECK_STR(member("{\"code\":\"x\",\"message\":\"a\\nb\"}", "message"), "a\nb");
	CHECK_STR(member("{\"a\":{\"message\":\"no\"},\"message\":\"yes\"}", "message"), "yes");
	CHECK_STR(member("{\"a\":[{\"message\":\"no\"}, \"no\"],\"message\":\"yes\"}", "message"),
		  "yes");
	CHECK_STR(member("{\"message\":\"incomplete\",\"x", "message"), "incomplete");
	CHECK_STR(member("{\"message\":\"longer than there is room\"}", "message"),
		  "longer than the");
	CHECK(!member("{\"message\":5}", "message"));
	CHECK(!member("[\"message\"]", "message"));
	CHECK(!member("<html>", "message"));
	CHECK(!member("", "message"));
}

TEST(too_deep)
{
	char json[2 * FUSEE_JSON_DEPTH + 64];
	size_t n = 0;

	for (uint32_t i = 0; i < FUSEE_JSON_DEPTH + 1; i++)
		json[n++] = '[';
	strcpy(json + n, "\"message\"");
	CHECK(!member(json, "message"));
}

TEST(states)
{
	enum { ITEMS = 2, ITEM, NAME, ANY };
	static const struct fusee_json_edge edges[] = {{FUSEE_JSON_TOP, ITEMS, "items"},
						       {ITEMS, ITEM, NULL},
						       {ITEM, NAME, "name"},
						       {ITEM, ANY, ""}};
	struct fusee_json_place p = {.edges = edges, .nedges = 4};

	CHECK_INT(fusee_json_state(&p), FUSEE_JSON_TOP);
	CHECK(fusee_json_enter(&p, false));
	fusee_json_key(&p, "others", 6);
	CHECK_INT(fusee_json_state(&p), FUSEE_JSON_IGNORED);
	fusee_json_key(&p, "items", 5);
	CHECK(fusee_json_enter(&p, true));
	CHECK_INT(fusee_json_state(&p), ITEM);
	CHECK(fusee_json_enter(&p, false));
	fusee_json_key(&p, "name", 4);
	CHECK_INT(fusee_json_state(&p), NAME);
	fusee_json_key(&p, "x", 1);
	CHECK_INT(fusee_json_state(&p), ANY);
	CHECK_INT(fusee_json_leave(&p), ITEM);
	CHECK_INT(fusee_json_leave(&p), ITEMS);
	CHECK_INT(fusee_json_leave(&p), FUSEE_JSON_TOP);
}
