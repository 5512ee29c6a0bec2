// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/lua
/* Callbacks of scripts: what every() takes, what a call sees, and what stops it. */
#include "lua/callback.h"

#include "base/metrics.h"
#include "lib/config.h"

static const struct fusee_label db[] = {
	{.key = {"process", 7}, .str = {"postgres", 8}},
	{.key = {"unit", 4}, .str = {"postgresql.service", 18}},
};
static const struct fusee_label web[] = {{.key = {"process", 7}, .str = {"nginx", 5}}};
static const pid_t db_pids[] = {40, 41, 77}, web_pids[] = {50};
static const struct callback_target targets[] = {
	{.labels = db, .nlabels = 2, .pids = db_pids, .npids = 3, .hz = 19, .cpu = 0.9},
	{.labels = web, .nlabels = 1, .pids = web_pids, .npids = 1, .refused = true},
};
static const struct callback_view view = {targets, 2};

/* A plan whose callback has this body, on line 3. */
static struct plan *with_callback(const char *body)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "local s, kept = sink.box { dir = '/a' }, {}\nevery('1m', function()\n%s\nend)\n",
		 body);
	return config_plan(text);
}

static struct callback_actions actions; /* of the last call */

static int run(const struct plan *p, const struct callback_view *v, char **text)
{
	callback_actions_fini(&actions);
	return lua_callback_run(p, 0, v, &actions, text);
}

TEST(what_every_takes)
{
	struct plan *p = config_plan("sink.box { dir = '/a' }\nevery('1s', function() end)\n"
				     "every('1.5m', function() end) every('1d', print)");
	struct buf b = {0};

	CHECK(!p->has_policy && p->script);
	CHECK_INT(p->callbacks.n, 3);
	CHECK_INT(p->callbacks.list[0].period_ns, 1000000000);
	CHECK_INT(p->callbacks.list[1].period_ns, 90000000000);
	CHECK_INT(p->callbacks.list[2].period_ns, 86400000000000);
	CHECK_STR(p->callbacks.list[0].where, "s.lua:2");
	CHECK_STR(p->callbacks.list[2].where, "s.lua:3");
	CHECK_INT(plan_json(p, &b), 0);
	buf_add(&b, "", 1);
	CHECK(strstr(b.p,
		     "\"callbacks\":[\n{\"every_s\":1,\"where\":\"s.lua:2\"},\n{\"every_s\":90,"));
	buf_fini(&b);
	plan_free(p);
}

static const struct {
	const char *script, *text;
} wrong[] = {
	{"every('1m')", "s.lua:1: every takes a duration and a function: every(\"1m\", function() "
			"... end)"},
	{"every(60, print)",
	 "s.lua:1: every takes a duration and a function: every(\"1m\", function() ... end)"},
	{"every('fast', print)",
	 "s.lua:1: every: the period must be a duration from 1s to 1d, got 'fast'"},
	{"every('10ms', print)",
	 "s.lua:1: every: the period must be a duration from 1s to 1d, got '10ms'"},
	{"every('2d', print)",
	 "s.lua:1: every: the period must be a duration from 1s to 1d, got '2d'"},
	{"for i = 1, 17 do every('1m', print) end", "s.lua:1: every: more than 16 callbacks"},
	{"targets()", "s.lua:1: targets can be called from a callback of every() only"},
	{"count('x')", "s.lua:1: count can be called from the policy or a callback only"},
};

TEST(wrong_declarations)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		config_refused(wrong[i].script, wrong[i].text);
}

/* Bodies that end with an error unless what they see is right. */
static const char *const right[] = {
	"",
	"assert(#targets() == 2)",
	"local t = targets()[1] assert(t.hz == 19 and t.cpu == 0.9)",
	"local t = targets()[2] assert(t.hz == 0 and t.cpu == 0 and #t.pids == 1)",
	"local p = targets()[1].pids assert(#p == 3 and p[1] == 40 and p[3] == 77)",
	"local l = targets()[1].labels assert(l.process == 'postgres' and l.none == nil)",
	"local n = 0 for k, v in pairs(targets()[1].labels) do n = n + #k + #v end assert(n == 37)",
	"local t = targets()[1] assert(t.labels == t.labels)",
	"for i, t in ipairs(targets()) do kept[i] = t.labels end",
	"targets()[1].pids[1] = 5 assert(targets()[1].pids[1] == 40)",
};

TEST(what_a_call_sees)
{
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		struct plan *p = with_callback(right[i]);
		char *text;

		for (int k = 0; k < 3; k++) {
			int r = run(p, &view, &text);

			if (r)
				fprintf(stderr, "# %s: %s\n", right[i], text);
			CHECK_INT(r, 0);
			CHECK(!text);
		}
		plan_free(p);
	}
}

static const struct {
	const char *body, *text;
} fail[] = {
	{"while true do end", "s.lua:3: every: runs longer than 20 ms of CPU time"},
	{"while true do pcall(function() while true do end end) end",
	 "s.lua:3: every: runs longer than 20 ms of CPU time"},
	{"pcall(function() while true do end end)",
	 "s.lua:3: every: runs longer than 20 ms of CPU time"},
	{"\n\nerror('I do not know')", "s.lua:5: every: I do not know"},
	{"error { 'x' }", "s.lua:2: every: s.lua: the error is a table, not a text"},
	{"local t = ('x'):rep(1 << 20) for i = 1, 20 do kept[i] = t .. i end",
	 "s.lua:2: every: s.lua: needs more than 16 MiB (near s.lua:3)"},
	{"for i = 1, 20 do pcall(function() kept[i] = ('x'):rep(1 << 20) .. i end) end error('so')",
	 "s.lua:3: every: so"},
	{"every('1m', print)",
	 "s.lua:3: every: every cannot be called from a callback: the plan is complete"},
	{"sink.box { dir = '/b' }",
	 "s.lua:3: every: sink cannot be called from a callback: the plan is complete"},
	{"targets()[1].hz = 5", "s.lua:3: every: a target cannot be assigned to"},
	{"targets()[1].labels.x = '5'",
	 "s.lua:3: every: write t:label(\"name\", \"value\") to add a label"},
	{"local _ = targets()[1].lables",
	 "s.lua:3: every: a target has no 'lables' (did you mean 'labels'?)"},
	{"local _ = targets()[1].rss",
	 "s.lua:3: every: a target has no 'rss': there are labels, pids, hz, cpu, rate, "
	 "drop, label and profile"},
	{"targets()[1]:rate(0, '5s')",
	 "s.lua:3: every: rate: hz must be a number from 0.1 to 20000, got 0"},
	{"targets()[1]:rate('97', '5s')",
	 "s.lua:3: every: rate: hz must be a number from 0.1 to 20000, got string"},
	{"targets()[1]:rate(97)",
	 "s.lua:3: every: rate: the time must be a duration from 1s to 1d, got no value"},
	{"targets()[1]:rate(97, '1ms')",
	 "s.lua:3: every: rate: the time must be a duration from 1s to 1d, got '1ms'"},
	{"targets()[1].rate(97, '5s')", "s.lua:3: every: rate is called as t:rate(hz, \"30s\")"},
	{"targets()[2]:rate(97, '5s')",
	 "s.lua:3: every: rate: the policy does not profile this target"},
	{"targets()[1]:profile(5, '5s')",
	 "s.lua:3: every: profile: the sink must be what sink.NAME { ... } returned, got number"},
	{"targets()[1]:profile(s)",
	 "s.lua:3: every: profile: the time must be a duration from 1s to 1d, got no value"},
	{"targets()[1]:drop()",
	 "s.lua:3: every: drop: the time must be a duration from 1s to 1d, got no value"},
	{"targets()[1]:label('a b', 'c')",
	 "s.lua:3: every: label: 'a b' is not a label name: letters, digits and _"},
	{"targets()[1]:label('a', 5)",
	 "s.lua:3: every: label: the value must be a string, got number"},
	{"targets()[1]:label('a', ('x'):rep(4097))",
	 "s.lua:3: every: label: the value has 4097 bytes: at most 4096"},
	{"local t = targets()[1] while true do t:label('a', 'b') end",
	 NULL}, /* time, or too many */
	{"count(5)", "s.lua:3: every: count takes the name of an event, got number"},
	{"count('x', -1)", "s.lua:3: every: count: the number must not be below 0"},
	{"count('x', 1, { ['a b'] = 'c' })",
	 "s.lua:3: every: count: 'a b' cannot be the name of a label"},
	{"count('x', 1, { event = 'c' })",
	 "s.lua:3: every: count: 'event' cannot be the name of a label"},
	{"count('x', 1, { a = 1 })", "s.lua:3: every: count: label 'a' must be a string, got "
				     "number"},
	{"local l = {} for i = 1, 9 do l['l' .. i] = 'x' end count('x', 1, l)",
	 "s.lua:3: every: count: more than 8 labels"},
};

TEST(what_fails)
{
	for (size_t i = 0; i < sizeof(fail) / sizeof(*fail); i++) {
		struct plan *p = with_callback(fail[i].body);
		char *text;

		/* again and again the same */
		for (int k = 0; k < 3; k++) {
			int r = run(p, &view, &text);

			if (!text)
				fprintf(stderr, "# %s\n", fail[i].body);
			CHECK_INT(r, -EINVAL);
			if (fail[i].text)
				CHECK_STR(text, fail[i].text);
			CHECK(!actions.n);
			free(text);
		}
		plan_free(p);
	}
}

TEST(actions_of_a_call)
{
	struct plan *p = with_callback("local t = targets()[1] t:rate(97, '30s') t:drop('1m')\n"
				       "t:label('team', 'db' .. 1) t:profile(s, '10s')");
	const struct callback_action *a;
	char *text;

	for (int i = 0; i < 3; i++) {
		CHECK_INT(run(p, &view, &text), 0);
		CHECK_INT(actions.n, 4);
		a = actions.list;
		CHECK(a[0].kind == CALLBACK_RATE && a[0].hz == 97 && a[0].ns == 30000000000);
		CHECK(a[1].kind == CALLBACK_DROP && a[1].ns == 60000000000 && !a[1].target);
		CHECK(a[2].kind == CALLBACK_LABEL && a[2].label.key.len == 4);
		CHECK(!memcmp(a[2].texts, "teamdb1", 7) && a[2].label.str.len == 3);
		CHECK(a[3].kind == CALLBACK_PROFILE && !a[3].sink && a[3].ns == 10000000000);
	}
	callback_actions_fini(&actions);
	plan_free(p);
}

/* A target of an earlier call would be another call's memory. */
TEST(a_target_of_an_earlier_call)
{
	struct plan *p = with_callback("if kept.t then return kept.t.hz end kept.t = targets()[1]");
	char *text;

	CHECK_INT(run(p, &view, &text), 0);
	CHECK_INT(run(p, &view, &text), -EINVAL);
	CHECK_STR(text, "s.lua:3: every: a target is valid until its callback returns: call "
			"targets() again");
	free(text);
	plan_free(p);
}

TEST(counts)
{
	struct plan *p = with_callback("count('hot') count('hot', 2) count('odd', 3, { team = 'db' "
				       "}) warn('too', 5)");
	char *text;

	metrics_reset();
	CHECK_INT(run(p, &view, &text), 0);
	CHECK_INT(metric_get("script_events_total", METRIC_LABELS("event", "hot")), 3);
	CHECK_INT(metric_get("script_events_total", METRIC_LABELS("event", "odd", "team", "db")),
		  3);
	CHECK_INT(metric_get("script_warnings_total", NULL), 1);
	plan_free(p);
	metrics_reset();
}

#ifdef __SANITIZE_ADDRESS__
#define MANY 2000 /* a callback has 20 ms of CPU time, and each access costs more */
#else
#define MANY 10000
#endif

/* 10,000 targets fit into the memory and the time of a call. */
TEST(many_targets)
{
	static struct callback_target many[MANY];
	const struct callback_view all = {many, MANY};
	struct plan *p = with_callback(
		"local n, all = 0, targets() for _, t in ipairs(all) do n = n + t.hz end "
		"assert(#all >= 2000 and n == 19 * #all)");
	char *text;

	for (int i = 0; i < MANY; i++)
		many[i] = targets[0];
	for (int i = 0; i < 20; i++) {
		int r = run(p, &all, &text);

		if (r)
			fprintf(stderr, "# %s\n", text);
		CHECK_INT(r, 0);
	}
	plan_free(p);
}
