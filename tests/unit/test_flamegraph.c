/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/profile core/report
/* The call tree of the flame graph page, and what stands in the page. tests/run/flamegraph looks at
 * it drawn. */
#include "test.h"

#include "profile/builder.h"
#include "report/report.h"
#include "report/calls.h"

struct made {
	struct builder *b;
	const struct fusee_profile *p;
	struct render_model m;
	struct render_calls t;
};

static struct builder *fresh(void)
{
	struct builder *b;

	CHECK(!builder_new(&b));
	builder_type(b, "cpu", "nanoseconds");
	return b;
}

static uint32_t frame(struct builder *b, const char *name, uint32_t line, uint32_t flags)
{
	struct fusee_function f = {.name = builder_cstr(b, name),
				   .system_name = builder_cstr(b, name)};
	struct fusee_line l = {.function = builder_function(b, &f), .line = line};
	struct fusee_mapping m = {.path = builder_cstr(b, "/bin/program"),
				  .flags = FUSEE_MAPPING_MAIN,
				  .limit = UINT64_MAX};
	struct fusee_location at = {.mapping = builder_mapping(b, &m),
				    .frame_type = builder_cstr(b, "native"),
				    .flags = flags,
				    .address = 0x1000 + line};

	return builder_location(b, &at, &l, 1);
}

static void sample(struct builder *b, const uint32_t *leaf_first, uint32_t n, int64_t value)
{
	CHECK(!builder_sample(b, builder_stack(b, leaf_first, n), NULL, 0, 1, 1, &value));
}

static void finish(struct made *x)
{
	struct buf error = {0};

	CHECK(!builder_finish(x->b, &x->p));
	CHECK(!render_model_make(&x->m, x->p, NULL, &(struct render_options){0}, &error));
	CHECK(!render_calls_make(&x->t, &x->m));
}

static void done(struct made *x)
{
	render_calls_free(&x->t);
	render_model_free(&x->m);
	builder_free(x->b);
}

static const struct render_call *call(const struct made *x, uint32_t i)
{
	CHECK(i && i < x->t.n);
	return &x->t.calls[i];
}

static void check_name(const struct made *x, uint32_t i, const char *name)
{
	struct fusee_str s = x->m.functions[call(x, i)->function].name;

	CHECK(s.len == strlen(name) && !memcmp(s.p, name, s.len));
}

TEST(children_are_sorted_by_name_and_values_are_their_own)
{
	struct made x = {.b = fresh()};
	uint32_t root = frame(x.b, "main", 1, 0), kid;

	sample(x.b, (uint32_t[]){frame(x.b, "zeta", 2, 0), root}, 2, 5);
	sample(x.b, (uint32_t[]){frame(x.b, "alpha", 3, 0), root}, 2, 7);
	sample(x.b, (uint32_t[]){frame(x.b, "alphabet", 4, 0), root}, 2, 2);
	sample(x.b, (uint32_t[]){root}, 1, 11);
	finish(&x);
	CHECK_INT(x.t.n, 5);
	CHECK_INT(x.t.calls[0].self, 0);
	check_name(&x, x.t.calls[0].first, "main");
	CHECK_INT(call(&x, x.t.calls[0].first)->self, 11);
	kid = call(&x, x.t.calls[0].first)->first;
	check_name(&x, kid, "alpha");
	CHECK_INT(call(&x, kid)->self, 7);
	CHECK_INT(call(&x, kid)->depth, 2);
	kid = call(&x, kid)->next;
	check_name(&x, kid, "alphabet");
	kid = call(&x, kid)->next;
	check_name(&x, kid, "zeta");
	CHECK_INT(call(&x, kid)->next, 0);
	done(&x);
}

TEST(lines_that_differ_are_none_and_one_guess_is_a_guess)
{
	struct made x = {.b = fresh()};
	uint32_t at;

	sample(x.b, (uint32_t[]){frame(x.b, "f", 10, 0)}, 1, 1);
	sample(x.b, (uint32_t[]){frame(x.b, "f", 20, FUSEE_LOCATION_GUESSED)}, 1, 1);
	sample(x.b, (uint32_t[]){frame(x.b, "g", 30, 0)}, 1, 1);
	finish(&x);
	CHECK_INT(x.t.n, 3);
	at = x.t.calls[0].first;
	CHECK_INT(call(&x, at)->line, 0);
	CHECK_INT(call(&x, at)->flags, RENDER_GUESSED);
	CHECK_INT(call(&x, at)->self, 2);
	at = call(&x, at)->next;
	CHECK_INT(call(&x, at)->line, 30);
	CHECK_INT(call(&x, at)->flags, 0);
	done(&x);
}

TEST(negative_values_are_not_drawn_but_counted)
{
	struct made x = {.b = fresh()};

	sample(x.b, (uint32_t[]){frame(x.b, "less", 1, 0)}, 1, -5);
	sample(x.b, (uint32_t[]){frame(x.b, "more", 2, 0)}, 1, 5);
	finish(&x);
	CHECK_INT(x.t.negative, 1);
	CHECK_INT(x.t.n, 2);
	check_name(&x, x.t.calls[0].first, "more");
	done(&x);
}

static struct buf page(const char *const *names)
{
	struct builder *b = fresh();
	const struct fusee_profile *p;
	struct buf out = {0};

	for (uint32_t i = 0; names[i]; i++)
		sample(b, (uint32_t[]){frame(b, names[i], i + 1, 0)}, 1, 1);
	CHECK(!builder_finish(b, &p));
	CHECK(!render_flamegraph(p, NULL, &(struct render_options){0}, &out));
	buf_add(&out, "", 1);
	CHECK(!out.error);
	builder_free(b);
	return out;
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

TEST(names_cannot_end_the_data)
{
	struct buf plain = page((const char *[]){"f", NULL});
	struct buf bad = page((const char *[]){"</script><script>x()</script>", "<!--", "@SCRIPT@",
					       "\"],\"", "\\", "\x01\xff", NULL});

	CHECK_INT(count(bad.p, "<script"), count(plain.p, "<script"));
	CHECK_INT(count(bad.p, "</script"), count(plain.p, "</script"));
	CHECK_INT(count(bad.p, "<!--"), count(plain.p, "<!--"));
	CHECK_INT(count(bad.p, "@SCRIPT@"), 1);
	CHECK(strstr(bad.p, "\"\\\"],\\\"\""));
	CHECK(strstr(bad.p, "\"\\\\\""));
	buf_fini(&plain);
	buf_fini(&bad);
}

TEST(an_empty_profile_is_a_page_too)
{
	struct buf b = page((const char *[]){NULL});

	CHECK(strstr(b.p, "\"nodes\":0,\"scale\":1,\"tree\":\"\""));
	CHECK(strstr(b.p, "'sha256-") && !strstr(b.p, "@HASH@"));
	buf_fini(&b);
}
