/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/profile
#include "test.h"

#include "base/utf8.h"
#include "profile/merge.h"
#include "lib/profiles.h"

static struct builder *fresh(void)
{
	struct builder *b;

	CHECK_INT(builder_new(&b), 0);
	return b;
}

static const char *text(const struct fusee_profile *p, uint32_t i)
{
	static char out[4][256];
	static int turn;
	const struct fusee_str *s = FUSEE_AT(struct fusee_str, p->strings, i);

	turn = (turn + 1) % 4;
	snprintf(out[turn], sizeof(out[turn]), "%.*s", (int)s->len, s->p);
	return out[turn];
}

static uint32_t location(struct builder *b, const char *name, uint64_t address)
{
	struct fusee_function f = {.name = builder_cstr(b, name)};
	struct fusee_line line = {.function = builder_function(b, &f), .line = 7};
	struct fusee_location l = {.address = address};

	return builder_location(b, &l, &line, 1);
}

TEST(empty)
{
	struct builder *b = fresh();
	const struct fusee_profile *p = finished(b);

	CHECK_INT(p->size, sizeof(*p));
	CHECK_INT(p->strings.n, 1);
	CHECK_INT(p->stacks.n, 1);
	CHECK_INT(p->samples.n, 0);
	CHECK_INT(p->mappings.n, 1);
	builder_free(b);
	builder_free(NULL);
}

#define TEST_OF_BUILDER(id) TEST_WITH(id, struct builder *, b, fresh(), builder_free(b))

TEST_OF_BUILDER(same_things_are_one)
{
	struct fusee_mapping m = {.path = builder_cstr(b, "/bin/x"), .limit = UINT64_MAX};
	uint32_t a = location(b, "f", 1), c = location(b, "f", 1), d = location(b, "f", 2);
	uint32_t ad[] = {a, d}, da[] = {d, a};

	CHECK_INT(builder_cstr(b, NULL), 0);
	CHECK_INT(builder_cstr(b, ""), 0);
	CHECK_INT(builder_cstr(b, "f"), builder_string(b, "fgh", 1));
	CHECK_INT(a, c);
	CHECK(a != d);
	CHECK_INT(builder_mapping(b, &m), builder_mapping(b, &m));
	CHECK_INT(builder_stack(b, ad, 2), builder_stack(b, ad, 2));
	CHECK(builder_stack(b, ad, 2) != builder_stack(b, da, 2));
	CHECK(builder_stack(b, ad, 2) != builder_stack(b, ad, 1));
	CHECK_INT(builder_stack(b, ad, 0), 0);
}

TEST_OF_BUILDER(samples_add_up)
{
	uint32_t l = location(b, "f", 1), stack = builder_stack(b, &l, 1);
	struct fusee_label x = {.key = str("x"), .str = str("1")},
			   y = {.key = str("y"), .num = 5, .unit = str("bytes")};
	struct fusee_label xy[] = {x, y}, yx[] = {y, x},
			   xx[] = {x, {.key = str("x"), .str = str("2")}};
	const int64_t v[] = {1, 10}, huge[] = {INT64_MAX, INT64_MIN};
	const struct fusee_profile *p;
	const struct fusee_sample *s;
	const struct fusee_label *label;

	CHECK_INT(builder_type(b, "samples", "count"), 0);
	CHECK_INT(builder_type(b, "cpu", "nanoseconds"), 1);
	CHECK_INT(builder_sample(b, stack, xy, 2, 7, 8, v), 0);
	CHECK_INT(builder_sample(b, stack, yx, 2, 7, 8, v), 0);
	CHECK_INT(builder_sample(b, stack, xy, 2, 7, 9, v), 0);
	CHECK_INT(builder_sample(b, stack, xx, 2, 7, 8, v), 0);
	CHECK_INT(builder_sample(b, stack, xy, 1, 7, 8, v), 0);
	CHECK_INT(builder_sample(b, stack, NULL, 0, 0, 0, huge), 0);
	CHECK_INT(builder_sample(b, stack, NULL, 0, 0, 0, huge), 0);
	p = finished(b);
	CHECK_INT(p->samples.n, 4);
	CHECK_INT(p->values.n, 8);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 0), 2);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 1), 20);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 4),
		  2); /* of two labels with one key the first stays */
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 6), INT64_MAX);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 7), INT64_MIN);
	s = FUSEE_AT(struct fusee_sample, p->samples, 2);
	CHECK_INT(s->nlabels, 1);
	label = FUSEE_AT(struct fusee_label, p->labels, s->first_label);
	CHECK(label->str.len == 1 && *label->str.p == '1');
}

TEST_OF_BUILDER(samples_of_ids)
{
	const uint64_t trace[] = {1, 2}, other[] = {1, 3}, none[2] = {0};
	uint32_t l = location(b, "f", 1), stack = builder_stack(b, &l, 1);
	const struct fusee_profile *p;
	const struct fusee_sample *s;
	const int64_t v = 1;

	CHECK_INT(builder_type(b, "samples", "count"), 0);
	for (int i = 0; i < 3; i++) {
		builder_ids(b, trace, 5);
		CHECK_INT(builder_sample(b, stack, NULL, 0, 7, 8, &v), 0);
		builder_ids(b, i ? trace : other, 6);
		CHECK_INT(builder_sample(b, stack, NULL, 0, 7, 8, &v), 0);
		builder_ids(b, none, 0);
		CHECK_INT(builder_sample(b, stack, NULL, 0, 7, 8, &v), 0);
	}
	p = finished(b);
	CHECK_INT(p->samples.n, 4);
	s = FUSEE_AT(struct fusee_sample, p->samples, 0);
	CHECK(s->trace_id[0] == 1 && s->trace_id[1] == 2 && s->span_id == 5);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 0), 3);
	s = FUSEE_AT(struct fusee_sample, p->samples, 1);
	CHECK(s->trace_id[1] == 3 && s->span_id == 6);
	s = FUSEE_AT(struct fusee_sample, p->samples, 2);
	CHECK(!s->trace_id[0] && !s->trace_id[1] && !s->span_id);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 2), 3);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 3), 2);
}

TEST_OF_BUILDER(samples_alike)
{
	uint32_t l = location(b, "f", 1), stack = builder_stack(b, &l, 1);
	struct fusee_label x = {.key = str("x"), .str = str("1")};
	const struct fusee_profile *p;
	const struct fusee_sample *s;
	const int64_t v = 1;

	CHECK_INT(builder_type(b, "samples", "count"), 0);
	CHECK_INT(builder_sample_alike(b, 0, &v), 0); /* of none: without labels */
	CHECK_INT(builder_sample(b, 0, &x, 1, 7, 8, &v), 0);
	CHECK_INT(builder_sample_alike(b, stack, &v), 0);
	CHECK_INT(builder_sample_alike(b, stack, &v), 0);
	CHECK_INT(builder_sample(b, stack, &x, 1, 7, 8, &v), 0);
	p = finished(b);
	CHECK_INT(p->samples.n, 3);
	CHECK_INT(p->labels.n, 1);
	CHECK_INT(FUSEE_AT(struct fusee_sample, p->samples, 0)->nlabels, 0);
	s = FUSEE_AT(struct fusee_sample, p->samples, 2);
	CHECK_INT(s->stack, stack);
	CHECK_INT(s->pid, 7);
	CHECK_INT(s->tid, 8);
	CHECK_INT(s->nlabels, 1);
	CHECK_INT(*FUSEE_AT(struct fusee_label, p->labels, s->first_label)->str.p, '1');
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 2), 3);
}

TEST_OF_BUILDER(no_such_stack)
{
	const int64_t v = 1;

	CHECK_INT(builder_type(b, "samples", "count"), 0);
	CHECK_INT(builder_sample_alike(b, 1, &v), -EINVAL);
}

static int64_t value_of(const struct fusee_profile *p, uint32_t sample)
{
	return *FUSEE_AT(int64_t, p->values, sample);
}

TEST_OF_BUILDER(parts_may_alternate)
{
	static const uint32_t parts[] = {2, 0, 2, 0, 3, 2};
	struct builder_place at[4];
	const struct fusee_profile *p;

	CHECK_INT(builder_type(b, "cpu", "nanoseconds"), 0);
	for (uint32_t i = 0; i < 6; i++) {
		const int64_t v = 1 << i;

		builder_part(b, parts[i]);
		CHECK_INT(builder_sample(b, 0, NULL, 0, i < 5 ? i : 2, 0, &v), 0);
	}
	builder_part(b, 2);
	builder_loss(b, LOSS_TICK, "timer skipped", 3);
	builder_part(b, 0);
	builder_loss(b, LOSS_TICK, "timer skipped", 4);
	p = finished(b);
	builder_places(b, at, 3);
	CHECK_INT(p->samples.n, 5); /* the last is added to the third */
	CHECK(at[0].sample == 0 && at[1].sample == 2 && at[2].sample == 2 && at[3].sample == 4);
	CHECK(at[0].loss == 0 && at[1].loss == 1 && at[2].loss == 1 && at[3].loss == 2);
	CHECK(value_of(p, 0) == 2 && value_of(p, 1) == 8 && value_of(p, 4) == 16);
	CHECK(value_of(p, 2) == 1 && value_of(p, 3) == 4 + 32);
	CHECK_INT(FUSEE_AT(struct fusee_sample, p->samples, 1)->pid, 3);
	CHECK_INT(FUSEE_AT(struct fusee_label, p->losses, 0)->num, 4);
}

/* As many as relabeling can make, and those that each sample has. */
TEST_OF_BUILDER(many_labels_of_a_sample)
{
	uint32_t l = location(b, "f", 1), stack = builder_stack(b, &l, 1);
	struct fusee_label labels[66];
	const struct fusee_profile *p;
	char names[66][8];
	int64_t v = 1;

	for (uint32_t i = 0; i < 66; i++) {
		snprintf(names[i], sizeof(names[i]), "l%u", i);
		labels[i] = (struct fusee_label){.key = str(names[i]), .str = str("x")};
	}
	CHECK_INT(builder_type(b, "samples", "count"), 0);
	CHECK_INT(builder_sample(b, stack, labels, 66, 7, 8, &v), 0);
	p = finished(b);
	CHECK_INT(FUSEE_AT(struct fusee_sample, p->samples, 0)->nlabels, 66);
}

TEST_OF_BUILDER(tables_hold_what_went_in)
{
	struct fusee_mapping m = {.path = builder_cstr(b, "/bin/x"),
				  .flags = FUSEE_MAPPING_MAIN,
				  .limit = UINT64_MAX};
	struct fusee_function inner = {.name = builder_cstr(b, "inner")},
			      outer = {.name = builder_cstr(b, "outer"), .start_line = 3};
	struct fusee_line lines[] = {{.line = 12, .flags = FUSEE_LINE_INLINED},
				     {.line = 40, .column = 5}};
	struct fusee_location l = {.address = 0x1234}, got;
	const struct fusee_profile *p;
	uint32_t at, stack;

	l.mapping = builder_mapping(b, &m);
	builder_mapping_flags(b, l.mapping, FUSEE_MAPPING_FUNCTIONS, 0);
	lines[0].function = builder_function(b, &inner);
	lines[1].function = builder_function(b, &outer);
	at = builder_location(b, &l, lines, 2);
	location(b, "f", 9);
	stack = builder_stack(b, &at, 1);
	p = finished(b);
	got = *FUSEE_AT(struct fusee_location, p->locations, at);
	CHECK_INT(got.nlines, 2);
	CHECK_INT(got.address, 0x1234);
	CHECK_INT(FUSEE_AT(struct fusee_mapping, p->mappings, got.mapping)->flags,
		  FUSEE_MAPPING_MAIN | FUSEE_MAPPING_FUNCTIONS);
	for (uint32_t i = 0; i < 2; i++) {
		const struct fusee_line *line = FUSEE_AT(struct fusee_line, p->lines,
							 got.first_line + i);

		CHECK_STR(text(p,
			       FUSEE_AT(struct fusee_function, p->functions, line->function)->name),
			  i ? "outer" : "inner");
		CHECK_INT(line->line, i ? 40 : 12);
	}
	CHECK_INT(FUSEE_AT(struct fusee_stack, p->stacks, stack)->n, 1);
	CHECK_INT(*FUSEE_AT(uint32_t, p->stack_locations,
			    FUSEE_AT(struct fusee_stack, p->stacks, stack)->first),
		  at);
}

TEST_OF_BUILDER(losses_comments_resource)
{
	const struct fusee_profile *p;

	builder_loss(b, LOSS_TICK, "timer skipped", 3);
	builder_loss(b, LOSS_STACK, "too deep", 1);
	builder_loss(b, LOSS_TICK, "timer skipped", 4);
	builder_comment(b, "host %s", "x");
	builder_comment(b, "host x");
	builder_resource(b, "unit", "a.service");
	builder_resource(b, "unit", "b.service");
	p = finished(b);
	CHECK_INT(p->losses.n, 2);
	CHECK_INT(FUSEE_AT(struct fusee_label, p->losses, 0)->num, 7);
	CHECK_INT(p->comments.n, 1);
	CHECK_INT(p->resource.n, 1);
	CHECK(!strncmp(FUSEE_AT(struct fusee_label, p->resource, 0)->str.p, "b.service", 9));
}

TEST(errors_stay)
{
	struct builder *b = fresh();
	const struct fusee_profile *p;
	struct fusee_location l = {.mapping = 99};
	int64_t v = 1;
	uint32_t bad = 77;

	CHECK_INT(builder_location(b, &l, NULL, 0), BUILDER_NONE);
	CHECK_INT(builder_cstr(b, "later"), BUILDER_NONE);
	CHECK_INT(builder_finish(b, &p), -EINVAL);
	builder_free(b);
	b = fresh();
	CHECK_INT(builder_sample(b, 0, NULL, 0, 0, 0, &v), -EINVAL); /* no type */
	builder_free(b);
	b = fresh();
	CHECK_INT(builder_stack(b, &bad, 1), BUILDER_NONE);
	builder_free(b);
	b = fresh();
	finished(b);
	CHECK_INT(builder_cstr(b, "after the end"), BUILDER_NONE);
	builder_free(b);
}

TEST_OF_BUILDER(bad_text_is_mended)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"abc", "abc"},
		{"\xc3\xa9", "\xc3\xa9"},
		{"\xe2\x82\xac\xf0\x9f\x94\xa5", "\xe2\x82\xac\xf0\x9f\x94\xa5"},
		{"caf\xc3", "caf\xef\xbf\xbd"},           /* ends in a character */
		{"\xe9t", "\xef\xbf\xbdt"},               /* Latin-1 */
		{"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"}, /* overlong */
		{"\xe0\x9f\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
		{"\xf4\x90\x80\x80",
		 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* beyond U+10FFFF */
		{"\xf0\x9f\x94", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xff", "\xef\xbf\xbd"},
	};
	const struct fusee_profile *p;
	uint32_t id[sizeof(cases) / sizeof(*cases)];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		id[i] = builder_cstr(b, cases[i].in);
		CHECK_INT(utf8_valid(cases[i].in, strlen(cases[i].in)),
			  !strcmp(cases[i].in, cases[i].out));
		CHECK(utf8_valid(cases[i].out, strlen(cases[i].out)));
	}
	p = finished(b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_STR(text(p, id[i]), cases[i].out);
}

/* A part of a profile by time: a sample with two of its three times has two thirds of its values.
 */
TEST(a_range_of_times)
{
	const struct merge_choice choice = {.from_ns = 20, .to_ns = 40};
	struct builder *b = fresh(), *c = fresh();
	const struct fusee_profile *p;
	int64_t three[] = {3}, one[] = {1};
	uint32_t kept;

	builder_type(b, "samples", "count");
	builder_profile(b)->start_ns = 10;
	builder_profile(b)->duration_ns = 100;
	builder_sample(b, 0, NULL, 0, 1, 1, three);
	for (uint64_t t = 10; t < 40; t += 10)
		builder_time(b, t);
	builder_sample(b, 0, NULL, 0, 1, 2, one);
	builder_time(b, 40);
	builder_sample(b, 0, NULL, 0, 1, 3, one);
	p = finished(b);
	CHECK_INT(merge_begin(c, p), 0);
	CHECK_INT(merge_add(c, p, &choice, &kept), 0);
	p = finished(c);
	CHECK_INT(kept, 1);
	CHECK_INT(p->samples.n, 1);
	CHECK_INT(*FUSEE_AT(int64_t, p->values, 0), 2);
	CHECK_INT(p->times.n, 2);
	CHECK_INT(*FUSEE_AT(uint64_t, p->times, 1), 30);
	CHECK_INT(p->start_ns, 20);
	CHECK_INT(p->duration_ns, 20);
	builder_free(b);
	builder_free(c);
}
