// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/lua core/profile docs/examples/regression.lua
/* Callbacks of on("profile"): what they see of a profile, and what they must not do. */
#include "base/metrics.h"
#include "lua/callback.h"
#include "lib/config.h"
#include "profile/builder.h"
#include "lib/profiles.h"

static uint32_t location(struct builder *b, uint32_t mapping, const char *name, uint64_t address)
{
	struct fusee_function f = {.name = builder_cstr(b, name)};
	struct fusee_line line = {0};
	struct fusee_location l = {.address = address, .mapping = mapping};

	f.system_name = f.name;
	line.function = builder_function(b, &f);
	l.frame_type = builder_cstr(b, "native");
	return builder_location(b, &l, &line, 1);
}

static void sample(struct builder *b, uint32_t leaf, uint32_t root, const char *process, int64_t n)
{
	const struct fusee_label l = {.key = str("process"), .str = str(process)};
	const uint32_t stack[] = {leaf, root};
	const int64_t values[] = {n, n * 10000000};

	CHECK_INT(builder_sample(b, builder_stack(b, stack, 2), &l, 1, 5, 0, values), 0);
}

/* web: main 100 %, heavy 75 %, light 25 %; db: all of its 100 samples in scan. */
static struct builder *make(const struct fusee_profile **p)
{
	struct fusee_mapping m = {.limit = UINT64_MAX};
	struct builder *b = new_builder();
	uint32_t main, heavy, light, scan;

	m.path = builder_cstr(b, "/usr/bin/shop");
	m.flags = FUSEE_MAPPING_MAIN;
	main = builder_mapping(b, &m);
	heavy = location(b, main, "heavy", 0x100);
	light = location(b, main, "light", 0x200);
	scan = location(b, main, "scan", 0x300);
	main = location(b, main, "main", 0x400);
	sample(b, heavy, main, "web", 75);
	sample(b, light, main, "web", 25);
	sample(b, scan, main, "db", 100);
	builder_resource(b, "service_name", "shop");
	builder_profile(b)->default_type = 1;
	builder_profile(b)->duration_ns = 2500000000;
	CHECK_INT(builder_finish(b, p), 0);
	return b;
}

static struct plan *with_callback(const char *body)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "local s, kept = sink.box { dir = '/a' }, {}\non('profile', "
		 "function(p)\n%s\nend)\n",
		 body);
	return config_plan(text);
}

static int run(const struct plan *plan, char **text)
{
	const struct fusee_profile *p;
	struct builder *b = make(&p);
	const struct callback_profile view = {"sink.box", p};
	int r = lua_callback_profile(plan, 0, &view, text);

	builder_free(b);
	return r;
}

/* Bodies that end with an error unless what they see is right. */
static const char *const right[] = {
	"",
	"assert(p.sink == 'sink.box' and p.duration == 2.5)",
	"assert(p.samples == 200 and p.cpu == 2)",
	"assert(p.labels.service_name == 'shop' and p.labels.none == nil)",
	"local t = p:top() assert(#t == 4)",
	"local t = p:top(1) assert(#t == 1 and t[1].name == 'scan' and t[1].self == 0.5)",
	"local t = p:top(9) assert(t[2].name == 'heavy' and t[2].self == 0.375)",
	"local t = p:top(9) assert(t[4].name == 'main' and t[4].self == 0 and t[4].total == 1)",
	"assert(p:top(1)[1].file == '/usr/bin/shop')",
	"local t = p:top(9, 'process=web') assert(#t == 3 and t[1].name == 'heavy')\n"
	"assert(t[1].self == 0.75 and t[2].self == 0.25 and t[3].total == 1)",
	"local t = p:top(9, 'process=web', 'process!=web') assert(#t == 0)",
	"assert(#p:top(1000) == 4) kept[#kept + 1] = p:top(1)",
};

TEST(what_a_callback_sees)
{
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		struct plan *p = with_callback(right[i]);
		char *text;

		CHECK_INT(p->callbacks.list[0].period_ns, 0);
		for (int k = 0; k < 3; k++) {
			int r = run(p, &text);

			if (r)
				fprintf(stderr, "# %s: %s\n", right[i], text);
			CHECK_INT(r, 0);
		}
		plan_free(p);
	}
}

static const struct {
	const char *body, *text;
} fail[] = {
	{"while true do pcall(function() while true do end end) end",
	 "s.lua:3: on: runs longer than 20 ms of CPU time"},
	{"while true do pcall(p.top, p) end", "s.lua:3: on: runs longer than 20 ms of CPU time"},
	{"for i = 1, 17 do p:top() end", "s.lua:3: on: top: more than 16 calls in a callback"},
	{"p:top(0)", "s.lua:3: on: top: the number must be from 1 to 1000"},
	{"p:top(1e9)", "s.lua:3: on: top: the number must be from 1 to 1000"},
	{"p.top(5)", "s.lua:3: on: top is called as p:top(n)"},
	{"p:top(5, {})",
	 "s.lua:3: on: top: a filter is a string such as \"process=web\", got table"},
	{"p.labels = {}", "s.lua:3: on: a profile cannot be changed"},
	{"local _ = p.sample", "s.lua:3: on: a profile has no 'sample' (did you mean 'samples'?)"},
	{"local _ = p.weather", "s.lua:3: on: a profile has no 'weather': there are sink, labels, "
				"duration, samples, cpu and top"},
	{"targets()", "s.lua:3: on: targets can be called from a callback of every() only"},
	{"on('profile', print)",
	 "s.lua:3: on: on cannot be called from a callback: the plan is complete"},
	{"error('no')", "s.lua:3: on: no"},
};

TEST(what_fails)
{
	for (size_t i = 0; i < sizeof(fail) / sizeof(*fail); i++) {
		struct plan *p = with_callback(fail[i].body);
		char *text;

		for (int k = 0; k < 3; k++) {
			int r = run(p, &text);

			if (!text)
				fprintf(stderr, "# %s\n", fail[i].body);
			CHECK_INT(r, -EINVAL);
			CHECK_STR(text, fail[i].text);
			free(text);
		}
		plan_free(p);
	}
}

/* A filter that is none is refused with a sentence. */
TEST(a_wrong_filter)
{
	struct plan *p = with_callback("p:top(5, 'process=~[')");
	char *text;

	CHECK_INT(run(p, &text), -EINVAL);
	CHECK(strstr(text, "s.lua:3: on: top: "));
	CHECK(strstr(text, "regular expression"));
	free(text);
	plan_free(p);
}

TEST(a_profile_of_an_earlier_call)
{
	struct plan *p = with_callback("if kept.p then return kept.p.cpu end kept.p = p");
	char *text;

	CHECK_INT(run(p, &text), 0);
	CHECK_INT(run(p, &text), -EINVAL);
	CHECK_STR(text, "s.lua:3: on: a profile is valid until its callback returns");
	free(text);
	plan_free(p);
}

static const struct {
	const char *script, *text;
} wrong[] = {
	{"on('profile')", "s.lua:1: on takes \"profile\" and a function: on(\"profile\", "
			  "function(p) ... end)"},
	{"on('window', print)", "s.lua:1: on takes \"profile\" and a function: on(\"profile\", "
				"function(p) ... end)"},
};

TEST(wrong_declarations)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		config_refused(wrong[i].script, wrong[i].text);
}

/* ---- docs/examples/regression.lua ---- */

#define FUNCTIONS 60

/* The example with a sink and without a discovery of this test's; it is found from this program,
 * build/tests/test_on_profile. */
static struct plan *example(void)
{
	static char text[16384];
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	char *at;
	FILE *f;

	CHECK(n > 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/'), "/../../docs/examples/regression.lua");
	f = fopen(path, "re");
	CHECK(f != NULL);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	at = strstr(text, "discover.process");
	CHECK(at != NULL);
	memcpy(at, "--", 2);
	at = strstr(text, "sink.pprof");
	CHECK(at != NULL);
	memcpy(at, "  sink.box", 10);
	return config_plan(text);
}

static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* n samples of a version, each in a function by chance: function i is as probable as 1 / (i + 2);
 * `more` of 100 are in function 7 beside that. */
static void version(const struct plan *plan, const char *name, uint32_t n, uint32_t more,
		    uint64_t *seed)
{
	uint32_t counts[FUNCTIONS] = {0}, weights = 0;
	struct fusee_mapping m = {.limit = UINT64_MAX};
	const struct fusee_profile *p;
	struct callback_profile view = {.sink = "sink.box"};
	struct builder *b;
	char *text;
	uint32_t mapping, root;

	for (uint32_t i = 0; i < FUNCTIONS; i++)
		weights += 10000 / (i + 2);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t at = (uint32_t)(draw(seed) % weights), i = 0;

		for (; at >= 10000 / (i + 2); i++)
			at -= 10000 / (i + 2);
		counts[draw(seed) % 100 < more ? 7 : i]++;
	}
	b = new_builder();
	m.path = builder_cstr(b, "/usr/bin/shop");
	mapping = builder_mapping(b, &m);
	root = location(b, mapping, "main", 8);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		char function[32];

		snprintf(function, sizeof(function), "function_%u", i);
		if (counts[i])
			sample(b, location(b, mapping, function, 100 + i), root, "shop", counts[i]);
	}
	builder_resource(b, "service_name", "shop");
	builder_resource(b, "version", name);
	builder_profile(b)->default_type = 1;
	CHECK_INT(builder_finish(b, &p), 0);
	view.profile = p;
	CHECK_INT(lua_callback_profile(plan, 0, &view, &text), 0);
	builder_free(b);
}

static double warnings(const char *name)
{
	return metric_get("script_events_total",
			  METRIC_LABELS("event", "regression", "service", "shop", "version", name));
}

/* 200 comparisons of a version with another run of it, and then 200 in which function 7 takes 12 of
 * 100 samples more than in the version before. */
TEST_FOR(the_example_of_regressions, 120)
{
	struct plan *plan = example();
	uint64_t seed = 88172645463325252;
	uint32_t falsely = 0, found = 0;
	char name[32];

	CHECK_INT(plan->callbacks.n, 1);
	metrics_reset();
	for (uint32_t i = 0; i <= 200; i++) {
		snprintf(name, sizeof(name), "same-%u", i);
		version(plan, name, 600, 0, &seed);
		version(plan, name, 600, 0, &seed);
		falsely += warnings(name) > 0;
	}
	for (uint32_t i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "slower-%u", i);
		version(plan, name, 1200, 12, &seed);
		found += warnings(name) > 0;
		snprintf(name, sizeof(name), "again-%u", i);
		version(plan, name, 1200, 0, &seed);
		falsely += warnings(name) > 0;
	}
	fprintf(stderr, "# false alarms: %u of 400 comparisons; found: %u of 200\n", falsely,
		found);
	CHECK_INT(falsely, 0);
	CHECK(found >= 195);
	metrics_reset();
	plan_free(plan);
}
