// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/lua
#include "lua/policy.h"

#include "lib/config.h"

#define HEAD                                                                            \
	"sample.cpu { hz = 31 }\n"                                                      \
	"local a = sink.box { dir = '/a' } local b = sink.box { dir = '/b' } local n\n" \
	"policy(function(t)\n"

/* A plan whose policy has this body, on line 4. */
static struct plan *with_policy(const char *body)
{
	char text[4096];

	snprintf(text, sizeof(text), HEAD "%s\nend)\n", body);
	return config_plan(text);
}

static const struct fusee_label labels[] = {
	{.key = {"process", 7}, .str = {"postgres", 8}},
	{.key = {"unit", 4}, .str = {"postgresql.service", 18}},
};

static int decide(const struct plan *p, struct policy_answer *d, char **text)
{
	return lua_policy_ask(p, labels, 2, d, text);
}

static bool is(struct fusee_str s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.p, text, s.len);
}

TEST(without_one)
{
	struct plan *p = config_plan("sample.cpu { hz = 23 } sink.box { dir = '/a' }\n"
				     "sink.box { dir = '/b' }");
	struct policy_answer d;
	char *text;

	CHECK_INT(decide(p, &d, &text), 0);
	CHECK(d.profile && d.hz == 23 && d.sinks == 3 && !d.nlabels && !text);
	plan_free(p);
}

TEST(sinks_that_are_not_by_default)
{
	struct plan *p = config_plan("sink.box { dir = '/a' }\n"
				     "local b = sink.box { dir = '/b', default = false }\n"
				     "local n = 0 policy(function(t) n = n + 1\n"
				     "if n == 2 then return { to = b } end end)");
	struct policy_answer d;
	char *text;

	CHECK_INT(decide(p, &d, &text), 0);
	CHECK_INT(d.sinks, 1);
	CHECK_INT(decide(p, &d, &text), 0);
	CHECK_INT(d.sinks, 2);
	plan_free(p);
}

TEST(answers)
{
	static const struct {
		const char *body;
		bool profile;
		double hz;
		uint64_t sinks;
		uint32_t nlabels;
	} cases[] = {
		{"", true, 31, 3, 0},
		{"return", true, 31, 3, 0},
		{"return nil", true, 31, 3, 0},
		{"return true", true, 31, 3, 0},
		{"return false", false, 31, 3, 0},
		{"return {}", true, 31, 3, 0},
		{"return { hz = 97 }", true, 97, 3, 0},
		{"return { hz = 0.1 }", true, 0.1, 3, 0},
		{"return { to = a }", true, 31, 1, 0},
		{"return { to = { b } }", true, 31, 2, 0},
		{"return { to = { b, a } }", true, 31, 3, 0},
		{"return { labels = {} }", true, 31, 3, 0},
		{"return { hz = 5, labels = { team = 'db', part = '' }, to = { b } }", true, 5, 2,
		 2},
		{"return t.labels.unit == 'postgresql.service'", true, 31, 3, 0},
		{"return t.labels.process ~= 'postgres'", false, 31, 3, 0},
		{"return t.labels.namespace ~= nil", false, 31, 3, 0},
		{"local n = 0 for k, v in pairs(t.labels) do n = n + #v end return { hz = n }",
		 true, 26, 3, 0},
		{"return { hz = #t.labels.unit:match('^(%w+)%.') }", true, 10, 3, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct plan *p = with_policy(cases[i].body);
		struct policy_answer d;
		char *text;
		int r = decide(p, &d, &text);

		if (r)
			fprintf(stderr, "# %s: %s\n", cases[i].body, text);
		CHECK_INT(r, 0);
		CHECK_INT(d.profile, cases[i].profile);
		CHECK(d.hz == cases[i].hz);
		CHECK_INT(d.sinks, cases[i].sinks);
		CHECK_INT(d.nlabels, cases[i].nlabels);
		CHECK(lua_policy_memory(p) > 10000);
		plan_free(p);
	}
}

static const struct {
	const char *body, *text;
} wrong_cases[] = {
	{"return 5", "s.lua:3: policy: it must return nil, true, false or a table, got 5"},
	{"return 'no'", "s.lua:3: policy: it must return nil, true, false or a table, got 'no'"},
	{"return a", "s.lua:3: policy: it must return nil, true, false or a table, got userdata"},
	{"return true, false", "s.lua:3: policy: it returned 2 values, not one"},
	{"return { hz = 'fast' }",
	 "s.lua:3: policy: 'hz' must be a number from 0.1 to 20000, got 'fast'"},
	{"return { hz = '97' }",
	 "s.lua:3: policy: 'hz' must be a number from 0.1 to 20000, got '97'"},
	{"return { hz = 0 }", "s.lua:3: policy: 'hz' must be a number from 0.1 to 20000, got 0"},
	{"return { hz = 0/0 }",
	 "s.lua:3: policy: 'hz' must be a number from 0.1 to 20000, got -nan"},
	{"return { zh = 97 }", "s.lua:3: policy: unknown 'zh' (did you mean 'hz'?)"},
	{"return { rate = 97 }", "s.lua:3: policy: unknown 'rate': there are hz, labels and to"},
	{"return { 97 }",
	 "s.lua:3: policy: unexpected unnamed value: hz, labels and to have names"},
	{"return { labels = 'x' }",
	 "s.lua:3: policy: 'labels' must be a table { name = \"value\" }, got string"},
	{"return { labels = { 'x' } }",
	 "s.lua:3: policy: 'labels' must be a table { name = \"value\" }, got a value "
	 "without name"},
	{"return { labels = { team = 5 } }",
	 "s.lua:3: policy: label 'team' must be a string, got number"},
	{"return { labels = { ['a b'] = '5' } }",
	 "s.lua:3: policy: 'a b' is not a label name: letters, digits and _"},
	{"return { labels = { ['1a'] = '5' } }",
	 "s.lua:3: policy: '1a' is not a label name: letters, digits and _"},
	{"return { labels = { a = ('x'):rep(5000) } }",
	 "s.lua:3: policy: label 'a' has 5000 bytes: at most 4096"},
	{"local l = {} for i = 1, 17 do l['l' .. i] = '' end return { labels = l }",
	 "s.lua:3: policy: more than 16 labels"},
	{"return { to = {} }", "s.lua:3: policy: 'to' is empty: return false to profile nothing"},
	{"return { to = 'a' }",
	 "s.lua:3: policy: 'to' must be a list of what sink.NAME { ... } returned, got "
	 "'a'"},
	{"return { to = { a, a } }", "s.lua:3: policy: 'to' holds sink.box twice"},
	{"return { to = { b, a, b } }", "s.lua:3: policy: 'to' holds sink.box#2 twice"},
	{"return { to = { n, a } }",
	 "s.lua:3: policy: 'to' must be a list of sinks: a variable in it may be nil"},
	{"return { to = { print } }",
	 "s.lua:3: policy: 'to' holds a function: give what sink.NAME { ... } returned"},
	{"return t.lables.unit == 'x'",
	 "s.lua:4: policy: a target has no 'lables': there is t.labels"},
	{"t.labels.unit = 'x'", "s.lua:4: policy: a target cannot be changed: return the answer"},
	{"t.x = 1", "s.lua:4: policy: a target cannot be changed: return the answer"},
	{"\nreturn t.labels.namespace.x",
	 "s.lua:5: policy: attempt to index a nil value (field 'namespace')"},
	{"error('I do not know')", "s.lua:4: policy: I do not know"},
	{"error { 'x' }", "s.lua:3: policy: s.lua: the error is a table, not a text"},
	{"x = 1", "s.lua:4: policy: global 'x' is not allowed: write 'local x = ...'"},
	{"sink.box { dir = '/c' }",
	 "s.lua:4: policy: sink cannot be called from the policy: the plan is "
	 "complete"},
	{"policy(print)", "s.lua:4: policy: policy cannot be called from the policy: the plan is "
			  "complete"},
	{"while true do end", "s.lua:4: policy: runs longer than 20 ms of CPU time"},
	{"while true do pcall(function() while true do end end) end",
	 "s.lua:4: policy: runs longer than 20 ms of CPU time"},
	{"local s = ('a'):rep(2000) s:find('.-.-.-b')",
	 "s.lua:4: policy: the pattern '.-.-.-b' takes more than 10000000 steps on a text "
	 "of 2000 bytes"},
	{"local l = {} for i = 1, 1e7 do l[i] = i .. 'x' end", NULL}, /* time or memory */
};

TEST(wrong_answers)
{
	for (size_t i = 0; i < sizeof(wrong_cases) / sizeof(*wrong_cases); i++) {
		struct plan *p = with_policy(wrong_cases[i].body);
		struct policy_answer d;
		char *text = NULL;

		/* again and again the same, and the defaults */
		for (int k = 0; k < 3; k++) {
			CHECK_INT(decide(p, &d, &text), -EINVAL);
			CHECK(text);
			if (wrong_cases[i].text)
				CHECK_STR(text, wrong_cases[i].text);
			CHECK(d.profile && d.hz == 31 && d.sinks == 3 && !d.nlabels);
			free(text);
		}
		plan_free(p);
	}
}

/* A stopped policy is called again, with its full time; what it keeps for itself stays. */
TEST(after_a_stop)
{
	struct plan *p = config_plan(
		"sink.box { dir = '/a' }\n"
		"local calls, co = 0, nil\n"
		"policy(function(t)\n"
		"  calls = calls + 1\n"
		"  co = co or coroutine.wrap(function() while true do coroutine.yield(1) end end)\n"
		"  if calls == 2 then co() while true do end end\n"
		"  for i = 1, 5000 do co() end\n"
		"  return { hz = calls }\n"
		"end)");
	struct policy_answer d;
	char *text;

	CHECK_INT(decide(p, &d, &text), 0);
	CHECK(d.hz == 1);
	CHECK_INT(decide(p, &d, &text), -EINVAL);
	free(text);
	for (int i = 3; i < 10; i++) {
		CHECK_INT(decide(p, &d, &text), 0);
		CHECK(d.hz == i);
	}
	plan_free(p);
}

TEST(labels_live_as_long_as_the_plan)
{
	struct plan *p = with_policy("return { labels = { team = 'team of ' .. t.labels.process,"
				     " b = 'x', a = 'x' } }");
	struct policy_answer first, d;
	char *text;

	CHECK_INT(decide(p, &first, &text), 0);
	CHECK_INT(first.nlabels, 3);
	for (int i = 0; i < 5000; i++)
		CHECK_INT(decide(p, &d, &text), 0);
	CHECK(is(first.labels[0].key, "a") && is(first.labels[1].key, "b") &&
	      is(first.labels[2].key, "team"));
	CHECK(is(first.labels[2].str, "team of postgres"));
	CHECK(first.labels[2].str.p == d.labels[2].str.p); /* kept once */
	plan_free(p);
}

/* Lua collects only while it allocates: the garbage of the last calls would stay for ever. */
TEST(garbage_of_the_last_calls)
{
	struct plan *p = with_policy("local text = t.labels.process:rep(40000)");
	struct policy_answer d;
	uint64_t before = lua_policy_memory(p), full;
	char *text;

	for (int i = 0; i < 3; i++)
		CHECK_INT(decide(p, &d, &text), 0);
	full = lua_policy_memory(p);
	CHECK(full > before + (300 << 10));
	lua_policy_collect(p); /* a part of the work */
	for (int i = 0; i < 200; i++)
		lua_policy_collect(p);
	CHECK(lua_policy_memory(p) < before + (32 << 10));
	CHECK_INT(decide(p, &d, &text), 0);
	plan_free(p);
	p = config_plan("sink.box { dir = '/a' }"); /* no script that is called */
	lua_policy_collect(p);
	plan_free(p);
}

/* A policy that makes up labels without end is stopped; memory stays bounded. */
TEST_FOR(labels_without_end, 120)
{
	struct plan *p = config_plan("sink.box { dir = '/a' } local n = 0\n"
				     "policy(function(t) n = n + 1\n"
				     "  return { labels = { n = n .. ('x'):rep(4000) } } end)");
	struct policy_answer d;
	char *text = NULL;
	int i, r = 0;

	for (i = 0; !r && i < 100000; i++)
		r = decide(p, &d, &text);
	CHECK_INT(r, -EINVAL);
	CHECK(i > 900 && i < 1200);
	CHECK(strstr(text, "s.lua:2: policy: it has returned too many different labels"));
	CHECK(lua_policy_memory(p) < 24 << 20);
	free(text);
	plan_free(p);
}

struct requested {
	const char *later; /* labels that may change */
	uint32_t n;        /* questions */
};

static bool may_change(void *arg, struct fusee_str name)
{
	struct requested *a = arg;

	a->n++;
	return is(name, a->later);
}

/* An answer is used only if the policy has not looked at what may change. */
TEST(what_a_policy_looks_at)
{
	static const struct {
		const char *body;
		bool requested, profile;
	} cases[] = {
		{"return t.labels.process == 'x'", false, false},
		{"return t.labels.process ~= 'x'", false, true},
		{"return t.labels['unit']:match('^postgres') ~= nil and t.labels.team ~= nil", true,
		 false},
		{"return t.labels.unit == 'x' and t.labels.team ~= nil", false, false},
		{"for k, v in pairs(t.labels) do if k == 'team' then return true end end return "
		 "false",
		 true, false},
		{"return t.labels.team:match('a')", true,
		 false}, /* an error now, but not with the label */
		{"local l = t.labels return l[1] == nil and l[false] == nil and l.other == 1",
		 false, false},
		{"return pcall(function() return t.labels.team:match('a') end)", true, false},
		{"return false", false, false},
		{"return nil", false, true},
		{"return {hz = 'wrong'}", true, false},
	};
	struct policy_answer d;
	char *text;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct plan *p = with_policy(cases[i].body);
		struct requested a = {.later = "team"};
		struct policy_watch w = {.may_change = may_change, .arg = &a};

		CHECK(lua_policy_is_early(p));
		CHECK_INT(lua_policy_ask_early(p, labels, 2, &d, &w), 0);
		CHECK_INT(w.requested, cases[i].requested);
		CHECK(cases[i].requested || d.profile == cases[i].profile);
		a.n = 0; /* a question with all labels is not watched */
		if (lua_policy_ask(p, labels, 2, &d, &text))
			free(text);
		CHECK_INT(a.n, 0);
		plan_free(p);
	}
}

/* Callbacks see refused targets with all their labels; without a policy all are profiled. */
TEST(no_policy_decides_early_beside_callbacks)
{
	static const char *const texts[] = {
		"sink.box { dir = '/a' }",
		"sink.box { dir = '/a' } policy(function(t) return false end)\n"
		"every('1s', function(targets) end)",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct plan *p = config_plan(texts[i]);
		struct policy_watch w = {0};
		struct policy_answer d;

		CHECK(!lua_policy_is_early(p));
		CHECK_INT(lua_policy_ask_early(p, labels, 2, &d, &w), 0);
		CHECK(w.requested);
		plan_free(p);
	}
}
