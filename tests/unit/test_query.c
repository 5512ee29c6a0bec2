// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/profile core/store core/query
/* What `fusee query` is made of: selectors, times, names of files, what a hash in a name tells. */

#include "profile/builder.h"
#include "store/internal/file_name.h"
#include "store/internal/label_sets.h"
#include "query/merged.h"
#include "query/selector.h"
#include "query/sums.h"
#include "query/when.h"
#include "test.h"
#include "lib/str.h"

static struct fusee_label label(const char *key, const char *value)
{
	return (struct fusee_label){.key = str(key), .str = str(value)};
}

/* ---- selectors ---- */

static struct selector *parsed(const char *text)
{
	struct selector *s = NULL;
	char *error = NULL;

	if (selector_parse(&s, text, &error))
		test_fail(__FILE__, __LINE__, "'%s': %s", text, error ? error : "no sentence");
	return s;
}

/* Whether a set of labels meets a selector. */
static int meets(const char *text, const struct fusee_label *labels, uint32_t n)
{
	struct selector *s = parsed(text);
	int r = selector_may_match(s, labels, n);

	selector_free(s);
	return r;
}

TEST(selectors_match_as_those_of_prometheus)
{
	const struct fusee_label web[] = {label("service", "web"), label("pod", "a-1"),
					  label("with blank", "\xc3\xa9\n\"")};
	static const struct {
		const char *text;
		int meets;
	} table[] = {
		{"{}", 1},
		{" cpu { } ", 1},
		{"cpu", 1},
		{"{service=\"web\"}", 1},
		{"{service='web',}", 1},
		{"{ service = `web` , pod != \"a-2\" }", 1},
		{"{service=\"we\"}", 0},
		{"{service=~\"we\"}", 0}, /* anchored */
		{"{service=~\"we.|db\"}", 1},
		{"{service!~\"we.|db\"}", 0},
		{"{service!~\"x\", pod=~\"a-\\\\d\"}", 1},
		{"{pod=~`a-\\d`}", 1},
		{"{pod=~\"a.*\", pod!=\"a-1\"}", 0},
		{"{\"with blank\"=\"\\u00e9\\n\\\"\"}", 1},
		{"{\"with blank\"='\\xc3\\xa9\\012\"'}", 1},
		{"{\"with blank\"=~\".{3}\"}", 1}, /* "." matches a line feed, and a character */
		{"{service=\"w\\145b\"}", 1},
		{"{service=\"\\U00000077eb\"}", 1},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (meets(table[i].text, web, 3) != table[i].meets)
			test_fail(__FILE__, __LINE__, "%s: not %d", table[i].text, table[i].meets);
}

TEST(the_type_is_before_the_brace)
{
	struct selector *s = parsed("alloc_space{a=\"b\"}");

	CHECK_STR(selector_type(s), "alloc_space");
	selector_free(s);
	s = parsed("{a=\"b\"}");
	CHECK(!selector_type(s));
	selector_free(s);
}

TEST(each_error_has_its_place_and_a_sentence)
{
	static const struct {
		const char *text, *error;
	} table[] = {
		{"", "character 1: the selector is empty: {} selects all samples"},
		{"  ", "character 3: the selector is empty: {} selects all samples"},
		{"(", "character 1: a selector begins with '{' or a profile type"},
		{"cpu x", "character 5: '{' or the end is expected after the profile type 'cpu'"},
		{"{", "character 2: the closing '}' is missing"},
		{"{a=\"b\"", "character 7: the closing '}' is missing"},
		{"{a=\"b\",", "character 8: the closing '}' is missing"},
		{"{,}", "character 2: the name of a label is expected, as in service_name=\"web\""},
		{"{1=\"b\"}",
		 "character 2: the name of a label is expected, as in service_name=\"web\""},
		{"{a}", "character 3: =, !=, =~ or !~ is expected after the name 'a'"},
		{"{a!\"b\"}", "character 3: =, !=, =~ or !~ is expected after the name 'a'"},
		{"{a=b}", "character 4: a value in quotes is expected, as in a=\"web\""},
		{"{a==\"b\"}", "character 4: a value in quotes is expected, as in a=\"web\""},
		{"{a=\"b}", "character 4: the closing quote is missing"},
		{"{a=\"b\n\"}", "character 4: the closing quote is missing"},
		{"{a=\"b\" c=\"d\"}", "character 8: ',' or '}' is expected after a value"},
		{"{a=\"b\"} x", "character 9: nothing may follow the closing '}'"},
		{"{__name__=\"cpu\"}",
		 "character 2: the profile type goes before the brace, as in cpu{}"},
		{"{a=\"\\q\"}",
		 "character 5: no such escape; a backslash in a value is written as two, or the "
		 "value in backquotes"},
		{"{a=\"\\x1\"}", "character 5: a number in an escape is too short: \\101, \\x41, "
				 "\\u0041, \\U00000041"},
		{"{a=\"\\777\"}", "character 5: an octal escape is above \\377"},
		{"{a=\"\\ud800\"}", "character 5: there is no such character in Unicode"},
		{"{a=\"\\xff\"}", "character 4: the text is not UTF-8"},
		{"{\"\xc3\xa9\"=\"b\", c=~\"(\"}",
		 "character 14: regex '(' is wrong at character 2: missing ')'"},
		{"{a=~\"\\000\"}", "character 5: an expression has no NUL"},
		{"{\"\\000\"=\"b\"}", "character 2: a label's name has no NUL"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct selector *s = NULL;
		char *error = NULL;

		CHECK_INT(selector_parse(&s, table[i].text, &error), -EINVAL);
		if (!error || strcmp(error, table[i].error))
			test_fail(__FILE__, __LINE__, "%s: '%s', expected '%s'", table[i].text,
				  error ? error : "none", table[i].error);
		free(error);
	}
}

TEST(conditions_are_limited)
{
	char text[512] = "{";
	struct selector *s = NULL;
	char *error = NULL;

	for (int i = 0; i < 33; i++)
		strcat(text, "a=\"b\",");
	strcat(text, "}");
	CHECK_INT(selector_parse(&s, text, &error), -EINVAL);
	CHECK_STR(error, "character 194: more than 32 conditions");
	free(error);
}

/* ---- profiles ---- */

struct sample {
	const char *service, *thread, *function;
	int64_t value;
};

static const struct fusee_profile *profile(struct builder **ret, const char *type, uint64_t start_s,
					   const struct sample *samples, uint32_t n)
{
	const struct fusee_profile *p = NULL;
	struct builder *b;

	CHECK_INT(builder_new(ret), 0);
	b = *ret;
	builder_type(b, type, "nanoseconds");
	builder_profile(b)->start_ns = start_s * 1000000000;
	builder_profile(b)->duration_ns = 1000000000;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t name = builder_cstr(b, samples[i].function);
		struct fusee_function f = {.name = name, .system_name = name};
		struct fusee_line line = {.function = builder_function(b, &f)};
		uint32_t at = builder_location(b, &(struct fusee_location){0}, &line, 1);
		struct fusee_label l[2] = {
			label("service", samples[i].service ? samples[i].service : ""),
			label("thread", samples[i].thread)};

		builder_sample(b, builder_stack(b, &at, 1), l + !samples[i].service,
			       2 - !samples[i].service, 0, 0, &samples[i].value);
	}
	CHECK_INT(builder_finish(b, &p), 0);
	return p;
}

static const struct sample some[] = {{"web", "x", "work", 3},
				     {"web", "y", "work", 4},
				     {"db", "x", "rest", 5},
				     {NULL, "x", "work", 6}};

TEST(a_label_that_is_absent_is_an_empty_text)
{
	static const struct {
		const char *text;
		int n;
	} table[] = {
		{"{service=\"\"}", 1},    {"{service!=\"\"}", 3},    {"{service=~\".*\"}", 4},
		{"{service=~\".+\"}", 3}, {"{service!=\"web\"}", 2}, {"{service!~\"w.*\"}", 2},
		{"{nonesuch=\"\"}", 4},   {"{nonesuch!=\"\"}", 0},   {"{service=~\"|db\"}", 2}};
	struct builder *b;
	const struct fusee_profile *p = profile(&b, "cpu", 1, some, 4);

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct selector *s = parsed(table[i].text);
		int n = 0;

		for (uint32_t k = 0; k < p->samples.n; k++)
			n += selector_matches(s, p, FUSEE_AT(struct fusee_sample, p->samples, k));
		if (n != table[i].n)
			test_fail(__FILE__, __LINE__, "%s: %d samples", table[i].text, n);
		selector_free(s);
	}
	builder_free(b);
}

TEST(an_expression_that_takes_too_long_is_an_error)
{
	char value[64];
	struct fusee_label l = {.key = str("a"), .str = {value, sizeof(value)}};

	memset(value, 'a', sizeof(value));
	value[0] = 'b';
	CHECK_INT(meets("{a=~\"b(a*)*(a*)*(a*)*[bc]\"}", &l, 1), -EAGAIN);
}

TEST(windows_become_one_profile)
{
	struct merged m = {.max_bytes = MERGED_MAX_BYTES};
	const struct fusee_profile *p, *all;
	struct buf error = {0};
	struct builder *b;

	m.filter.selector = parsed("{service=\"web\"}");
	m.choice.only_labels = true;
	for (uint64_t i = 3; i > 0; i--) {
		p = profile(&b, "cpu", i, some, i == 2 ? 0 : 4); /* nothing of the second */
		CHECK_INT(merged_add(&m, p, "a window", &error), 0);
		builder_free(b);
	}
	CHECK_INT(m.windows, 2);
	CHECK_INT(merged_finish(&m, &all), 0);
	CHECK_INT(all->samples.n, 1); /* the thread is not kept */
	CHECK_INT(*FUSEE_AT(int64_t, all->values, 0), 14);
	CHECK_INT(all->functions.n, 2); /* "rest" is not of these samples */
	CHECK_INT(all->start_ns, 1000000000);
	CHECK_INT(all->duration_ns, 2000000000);
	selector_free(m.filter.selector);
	merged_fini(&m);
}

TEST(what_cannot_be_added_up_is_an_error)
{
	struct merged m = {.max_bytes = MERGED_MAX_BYTES};
	struct buf error = {0};
	struct builder *b;

	m.filter.selector = parsed("{}");
	CHECK_INT(merged_add(&m, profile(&b, "cpu", 1, some, 4), "one", &error), 0);
	builder_free(b);
	CHECK_INT(merged_add(&m, profile(&b, "off_cpu", 1, some, 4), "two", &error), -EINVAL);
	builder_free(b);
	buf_add(&error, "", 1);
	CHECK_STR(error.p,
		  "'one' has cpu/nanoseconds, 'two' has off_cpu/nanoseconds: they cannot be "
		  "added up; name one type before the brace, as in cpu{}");
	buf_fini(&error);
	selector_free(m.filter.selector);
	merged_fini(&m);

	m = (struct merged){.max_bytes = 1};
	m.filter.selector = parsed("cpu{}");
	CHECK_INT(merged_add(&m, profile(&b, "off_cpu", 1, some, 4), "one", &error), 0);
	CHECK(!m.builder);
	builder_free(b);
	CHECK_INT(merged_add(&m, profile(&b, "cpu", 1, some, 4), "two", &error), -EFBIG);
	CHECK(error.len);
	builder_free(b);
	buf_fini(&error);
	selector_free(m.filter.selector);
	merged_fini(&m);
}

/* A profile of one sample, whose values are 1, with these types: each a type and a unit. */
static const struct fusee_profile *typed(struct builder **b, const char *const types[][2],
					 uint32_t n)
{
	const struct fusee_profile *p = NULL;
	const int64_t values[2] = {1, 1};

	CHECK_INT(builder_new(b), 0);
	for (uint32_t i = 0; i < n; i++)
		builder_type(*b, types[i][0], types[i][1]);
	builder_sample(*b, builder_stack(*b, NULL, 0), NULL, 0, 0, 0, values);
	CHECK_INT(builder_finish(*b, &p), 0);
	return p;
}

TEST(types_with_equal_texts_are_not_equal)
{
	static const char *const two[][2] = {{"a", "b"}, {"c", "d"}};
	static const char *const one[][2] = {{"a", "b, c/d"}};
	struct buf error = {0};
	struct builder *b;
	struct sums s;

	CHECK_INT(sums_init(&s, NULL, &error), 0);
	s.filter.selector = parsed("{}");
	CHECK_INT(sums_add(&s, typed(&b, two, 2), "two", &error), 0);
	builder_free(b);
	CHECK_INT(sums_add(&s, typed(&b, one, 1), "one", &error), -EINVAL);
	builder_free(b);
	CHECK_INT(s.total, 1);
	buf_fini(&error);
	selector_free(s.filter.selector);
	sums_fini(&s);
}

TEST(types_of_windows_that_are_not_selected_do_not_matter)
{
	struct buf error = {0};
	struct builder *b;
	struct sums s;

	CHECK_INT(sums_init(&s, NULL, &error), 0);
	s.filter.selector = parsed("{service=\"web\"}");
	CHECK_INT(sums_add(&s, profile(&b, "off_cpu", 1, some + 2, 2), "db", &error), 0);
	builder_free(b);
	CHECK_INT(sums_add(&s, profile(&b, "cpu", 1, some, 2), "web", &error), 0);
	builder_free(b);
	CHECK_INT(s.total, 7);
	CHECK_STR(s.type, "cpu");
	buf_fini(&error);
	selector_free(s.filter.selector);
	sums_fini(&s);
}

TEST(only_samples_with_the_function)
{
	struct merged m = {.max_bytes = MERGED_MAX_BYTES};
	const struct fusee_profile *all;
	struct buf error = {0};
	struct functions f;
	struct builder *b;

	CHECK_INT(functions_init(&f, "^w", &error), 0);
	m.filter.selector = parsed("{}");
	m.filter.functions = &f;
	for (int i = 0; i < 2; i++) { /* names are matched once */
		CHECK_INT(merged_add(&m, profile(&b, "cpu", 1, some, 4), "one", &error), 0);
		builder_free(b);
	}
	CHECK_INT(merged_finish(&m, &all), 0);
	CHECK_INT(all->samples.n, 3);
	functions_fini(&f);
	selector_free(m.filter.selector);
	merged_fini(&m);
	CHECK_INT(functions_init(&f, "(", &error), -EINVAL);
	CHECK(error.len);
	buf_fini(&error);
}

/* ---- sums ---- */

TEST(sums_by_label_and_step)
{
	struct buf error = {0};
	struct builder *b;
	struct sums s;

	CHECK_INT(sums_init(&s, "service,nonesuch", &error), 0);
	s.filter.selector = parsed("{}");
	for (uint64_t i = 0; i < 10; i++) {
		CHECK_INT(sums_add(&s, profile(&b, "cpu", 100 + i, some, 4), "w", &error), 0);
		builder_free(b);
	}
	CHECK_INT(sums_step(&s), 1000000000);
	CHECK_INT(sums_finish(&s, 5000000000), 0);
	CHECK_INT(s.total, 180);
	CHECK_INT(s.stacks, 40);
	CHECK_STR(s.type, "cpu");
	CHECK_INT(s.ngroups, 3);
	CHECK_INT(s.groups[0].total, 70);
	CHECK_STR(s.groups[0].values.p, "web");
	CHECK_STR(s.groups[1].values.p, "");
	CHECK_INT(s.npoints, 6);
	CHECK_INT(s.points[1].start_ns, 105000000000);
	CHECK_INT(s.points[1].value, 35);
	selector_free(s.filter.selector);
	sums_fini(&s);
	CHECK_INT(sums_init(&s, "a,,b", &error), -EINVAL);
	buf_fini(&error);
}

/* ---- times ---- */

#define NOW 1763712000ull /* 2025-11-21T08:00:00Z */

static uint64_t when(const char *text)
{
	uint64_t ns = 0;

	if (when_parse(text, NOW * 1000000000, &ns))
		test_fail(__FILE__, __LINE__, "'%s' is refused", text);
	return ns / 1000000;
}

TEST(times_as_people_write_them)
{
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	CHECK_INT(when("now"), NOW * 1000);
	CHECK_INT(when("2h"), (NOW - 7200) * 1000);
	CHECK_INT(when("-15m"), (NOW - 900) * 1000);
	CHECK_INT(when("now-1.5h"), (NOW - 5400) * 1000);
	CHECK_INT(when("1763712000"), NOW * 1000);
	CHECK_INT(when("1763712000.25"), NOW * 1000 + 250);
	CHECK_INT(when("2025-11-21T08:00:00Z"), NOW * 1000);
	CHECK_INT(when("2025-11-21T08:00Z"), NOW * 1000);
	CHECK_INT(when("2025-11-21T08:00:00.125Z"), NOW * 1000 + 125);
	CHECK_INT(when("2025-11-21T09:00:00+01:00"), NOW * 1000);
	CHECK_INT(when("2025-11-21T03:30:00-0430"), NOW * 1000);
	CHECK_INT(when("2025-11-21 09:00:00"), NOW * 1000); /* local */
	CHECK_INT(when("2025-07-21 09:00"), 1753081200000); /* in summer */
	CHECK_INT(when("2025-11-21"), (NOW - 9 * 3600) * 1000);
	CHECK_INT(when("today"), (NOW - 9 * 3600) * 1000);
	CHECK_INT(when("yesterday"), (NOW - 33 * 3600) * 1000);
	CHECK_INT(when("2024-02-29T00:00:00Z"), 1709164800000);
}

TEST(other_times_are_refused)
{
	static const char *const texts[] = {"",
					    "-",
					    "15",
					    "15x",
					    "tomorrow",
					    "now-",
					    "now-15",
					    "now+1h",
					    "99999999999h",
					    "2025-13-01",
					    "2025-02-29",
					    "2025-11-31",
					    "2025-11-21T",
					    "2025-11-21T25:00Z",
					    "2025-11-21T08:00:00X",
					    "2025-11-21T08:00+1",
					    "2025-11-21T08:00+99:00",
					    "2025-11-21T08",
					    "12345678901",
					    "1763712000.5s",
					    "9999-99-99",
					    "-1763712000"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		uint64_t ns = 1;

		if (!when_parse(texts[i], NOW * 1000000000, &ns))
			test_fail(__FILE__, __LINE__, "'%s' is a time: %llu", texts[i],
				  (unsigned long long)ns);
	}
}

/* ---- names of files ---- */

TEST(names_of_files)
{
	static const char *const others[] = {
		"fusee.pb.gz",
		"2026-11-21T08-15-00Z--1a2b3c4d-0123456789abcdef.pb.gz.",
		"2026-11-21T08-15-00Z-1a2b3c4d-0123456789abcdef.pb.gz",
		"2026-11-21T08-15-00Z-web-1a2b3c4g-0123456789abcdef.pb.gz",
		"2026-11-21T08-15-00Z-web-1a2b3c4d-0123456789abcdef.pb",
		"2026-13-21T08-15-00Z-web-1a2b3c4d-0123456789abcdef.pb.gz",
		".2026-11-21T08-15-00Z-web-1a2b3c4d-0123456789abcdef.pb.gz.part",
		"",
	};
	struct file_name f;

	CHECK(file_name_parse("2026-11-21T08-15-00Z-my-web-1a2b3c4d-0123456789abcdef.pb.gz", &f));
	CHECK_INT(f.start_ns, 1795248900000000000);
	CHECK_INT(f.target.len, 6);
	CHECK(!memcmp(f.target.p, "my-web", 6));
	CHECK_INT(f.hash, 0x1a2b3c4d);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		CHECK(!file_name_parse(others[i], &f));
}

/* What a file with labels {service="db"} in its name's hash teaches a selector. */
static bool learns(const char *selector, const struct sample *samples, uint32_t n,
		   const char *service)
{
	const struct fusee_label set[] = {label("service", service)};
	struct file_name name = {.target = str(service), .hash = file_name_hash(set, 1)},
			 other = name;
	struct label_sets s;
	struct builder *b;
	bool excluded;

	label_sets_init(&s, parsed(selector));
	CHECK(!label_sets_excludes(&s, &name));
	CHECK_INT(label_sets_learn(&s, &name, profile(&b, "cpu", 1, samples, n)), 0);
	excluded = label_sets_excludes(&s, &name);
	other.hash++;
	CHECK(!label_sets_excludes(&s, &other));
	builder_free(b);
	selector_free(s.selector);
	label_sets_fini(&s);
	return excluded;
}

TEST(a_file_teaches_the_labels_of_its_hash)
{
	static const struct sample db[] = {{"db", "x", "f", 1}, {"db", "y", "f", 1}},
				   one[] = {{"db", "x", "f", 1}},
				   slow[] = {{"baaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					      "aaaaaaaaaaaaa",
					      "x", "f", 1}};

	CHECK(learns("{service=\"web\"}", db, 2, "db"));
	CHECK(learns("{service=\"web\"}", one, 1, "db")); /* its thread is no label of the set */
	CHECK(!learns("{service=\"db\"}", db, 2, "db"));
	CHECK(!learns("{service!=\"web\"}", db, 2, "db"));
	CHECK(!learns("{thread=\"z\"}", one, 1, "db")); /* another file may have it */
	CHECK(!learns("{pod=\"a\"}", db, 2, "db"));
	CHECK(!learns("{service=~\"b(a*)*(a*)*(a*)*[bc]\"}", slow, 1, slow->service));
	/* Not all samples have the label, or the hash is of other labels: nothing is known. */
	CHECK(!learns("{service=\"web\"}", some, 4, "web"));
	CHECK(!learns("{service=\"x\"}", db, 2, "other"));
}
