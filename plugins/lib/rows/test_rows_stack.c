/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/lib/rows
/* The text of a stack is that of fusee report --folded. */
#include "test.h"

#include "profile/builder.h"
#include "report/report.h"

#include "stack.h"

/* "eval*" is the interpreter's own code, "app@" a function of the language, "gen#" a function that
 * it hides, "native" another, "?" has no name, "0" is the location that stands for no frame. */
static uint32_t frame(struct builder *b, const char *s)
{
	struct fusee_mapping map = {.limit = UINT64_MAX, .path = builder_cstr(b, "/lib/libx.so")};
	struct fusee_function f = {.flags = strchr(s, '#') ? FUSEE_FRAME_HIDDEN : 0};
	struct fusee_location l = {.address = 16 + (uint64_t)*s};
	struct fusee_line line = {.line = 9};

	if (*s == '0')
		return 0;
	f.name = f.system_name = builder_string(b, s, strcspn(s, "*@#"));
	if (strpbrk(s, "@#"))
		l.frame_type = builder_cstr(b, "cpython");
	else
		l.mapping = builder_mapping(b, &map);
	if (strchr(s, '*')) {
		l.flags = FUSEE_LOCATION_INTERPRETER;
		l.language = builder_cstr(b, "cpython");
	}
	if (*s == '?')
		return builder_location(b, &l, NULL, 0);
	line.function = builder_function(b, &f);
	return builder_location(b, &l, &line, 1);
}

static const struct fusee_profile *profile_of(struct builder **b, const char *leaf_first)
{
	uint32_t locations[16], k = 0;
	char *copy = strdup(leaf_first), *at = NULL;
	const struct fusee_profile *p;
	int64_t n = 3;

	CHECK_INT(builder_new(b), 0);
	builder_type(*b, "samples", "count");
	for (char *s = strtok_r(copy, ";", &at); s; s = strtok_r(NULL, ";", &at))
		locations[k++] = frame(*b, s);
	builder_sample(*b, builder_stack(*b, locations, k), NULL, 0, 0, 0, &n);
	CHECK_INT(builder_finish(*b, &p), 0);
	free(copy);
	return p;
}

static void check_same(const char *leaf_first)
{
	struct render_options o = {0};
	struct buf report = {0};
	struct fusee_bytes t = {0};
	struct builder *b;
	const struct fusee_profile *p = profile_of(&b, leaf_first);
	const struct fusee_sample *s = FUSEE_AT(struct fusee_sample, p->samples, 0);

	CHECK_INT(render_folded(p, NULL, &o, &report), 0);
	buf_str(&report, "");
	CHECK(stack_fold(&t, p, FUSEE_AT(struct fusee_stack, p->stacks, s->stack), 4096));
	CHECK(report.len > 3 && !memcmp(report.p + report.len - 3, " 3\n", 3));
	CHECK_INT((int)t.len, (int)report.len - 3);
	CHECK(!memcmp(t.p, report.p, t.len));
	fusee_bytes_fini(&t);
	buf_fini(&report);
	builder_free(b);
}

TEST(as_report_has_it)
{
	check_same("native;main");
	check_same("add*;app@;eval*;top@;eval*;main");
	check_same("collect*;run*;main");
	check_same("?;main");
	check_same("app@;gen#;eval*;main");
}

TEST(a_stack_of_which_all_is_omitted_is_shown)
{
	check_same("gen#");
	check_same("gen#;eval*;gen#");
	check_same("");
	check_same("0");
	check_same("native;0");
}
