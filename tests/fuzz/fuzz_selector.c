// SPDX-License-Identifier: Apache-2.0
// sources: core/query/selector*.c core/query/when.c core/relabel/regex*.c
// sources: core/report/labels.c core/report/text.c
// sources: core/base/buf.c core/base/utf8.c core/base/text.c core/base/json.c
// libs: -lpcre2-8
/* Any text as a selector: an error with a place in it, or a selector that matches labels; and as a
 * point in time. */
#include "fuzz.h"

#include "query/selector.h"
#include "query/when.h"

static void match(struct selector *s)
{
	static const struct fusee_label labels[] = {
		{.key = {"a", 1}, .str = {"b", 1}},
		{.key = {"pod", 3}, .str = {"web-1", 5}},
		{.key = {"service", 7}, .str = {"", 0}},
	};
	int first = selector_may_match(s, labels, 3), again = selector_may_match(s, labels, 3);

	must(first == again, "a selector has one result");
	must(first <= 1, "a result is 0, 1 or an error");
}

static void check_error(const char *text, const char *error)
{
	unsigned long column = 0;
	size_t characters = 0;

	for (const char *p = text; *p; p++)
		characters += ((unsigned char)*p & 0xc0) != 0x80;
	must(error && sscanf(error, "character %lu: ", &column) == 1, "an error has its place");
	must(column >= 1 && column <= characters + 1, "the place is in the text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *error = NULL;
	struct selector *s = NULL;
	uint64_t ns = 0;
	int r;

	if (!text)
		return 0;
	r = selector_parse(&s, text, &error);
	if (!r)
		match(s);
	else
		check_error(text, error);
	if (!when_parse(text, 1763712000000000000, &ns))
		must(ns <= 9100000000000000000, "a time is in its range");
	selector_free(s);
	free(error);
	free(text);
	return 0;
}
