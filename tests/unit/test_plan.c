// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/config
/* Plans as they come out: of scripts and of flags. Wrong scripts: tests/run/scripts. */
#include "config/plan.h"

#include "lib/config.h"
#include "lua/internal/pattern.h"

static struct plan *of_flags(struct plan_errors *errors, const struct plan_flags *f)
{
	struct plan *p = NULL;
	int r = plan_from_flags(&p, f, &config_folder, errors);

	CHECK_INT(r, errors->n ? -EINVAL : 0);
	CHECK(!p == !!errors->n);
	return p;
}

static const struct option_value *option_of(const struct plan_instance *p, const char *name)
{
	for (uint32_t i = 0; i < p->noptions; i++)
		if (!strcmp(p->options[i].name, name))
			return &p->options[i].value;
	return NULL;
}

TEST(defaults)
{
	struct plan *p = config_plan("sink.box { dir = '/x' }");

	CHECK_STR(p->path, "s.lua");
	CHECK(p->hz == 19 && p->limits.stack_bytes == 65528 && p->kernel && !p->threads &&
	      p->inlines);
	CHECK(p->unknown_keep && !p->has_policy && !p->script && !*p->without && !*p->listen &&
	      *p->control);
	CHECK_INT(p->nsinks, 1);
	CHECK_STR(p->sinks[0]->name, "sink.box");
	CHECK_STR(p->sinks[0]->where, "s.lua:1");
	CHECK(p->sinks[0]->descriptor == &box_plugin);
	CHECK_INT(p->sinks[0]->every_ns, 60000000000);
	CHECK_INT(p->sinks[0]->queue_bytes, 64 << 20);
	CHECK(!p->sinks[0]->per_target && !*p->sinks[0]->omit);
	/* the instance that needs no option */
	CHECK_INT(p->ndiscoveries, 1);
	CHECK_STR(p->discoveries[0]->name, "discover.crowd");
	CHECK_STR(p->discoveries[0]->where, "");
	CHECK_INT(lua_policy_memory(p), 0);
	plan_free(p);
	plan_free(NULL);
}

TEST(everything)
{
	struct plan *p = config_plan("sample.cpu { hz = 99.5, stack = '10001', kernel = false,\n"
				     "  threads = true, inlines = false }\n"
				     "unknown 'drop'\n"
				     "metrics {} control { path = '/c' }\n"
				     "discover.keeper { url = 'u' }\n"
				     "sink.box { dir = '/a', every = '1s', queue = '64KiB',\n"
				     "  per = 'target', omit = { 'pid', 'tid' } }\n"
				     "sink.box { dir = '/b' }\n");

	CHECK(p->hz == 99.5 && !p->kernel && p->threads && !p->inlines && !p->unknown_keep);
	CHECK_INT(p->limits.stack_bytes, 10000); /* a multiple of 8 */
	CHECK_STR(p->listen, "127.0.0.1:9190");
	CHECK_STR(p->control, "/c");
	CHECK_INT(p->ndiscoveries, 1);
	CHECK_STR(p->discoveries[0]->name, "discover.keeper");
	CHECK_INT(p->sinks[0]->every_ns, 1000000000);
	CHECK_INT(p->sinks[0]->queue_bytes, 65536);
	CHECK(p->sinks[0]->per_target);
	CHECK_STR(p->sinks[0]->omit[0], "pid");
	CHECK_STR(p->sinks[0]->omit[1], "tid");
	CHECK(!p->sinks[0]->omit[2]);
	CHECK_INT(p->sinks[0]->noptions, 1); /* the core's own are not the plugin's */
	CHECK_STR(p->sinks[1]->name, "sink.box#2");
	CHECK_STR(p->sinks[1]->where, "s.lua:8");
	plan_free(p);
}

TEST(unwinders)
{
	static const struct {
		const char *script, *without;
	} cases[] = {
		{"", ""},
		{"unwind.native { enabled = false }", "native "},
		{"unwind.snake {}", ""},
		{"unwind.snake { enabled = false }", "snake "},
		{"unwind.native {}", ""},
		{"unwind.snake {} unwind.gem {} unwind.native { enabled = false }", "native "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[256], found[256] = "";
		struct plan *p;

		snprintf(text, sizeof(text), "sink.box { dir = '/x' } %s", cases[i].script);
		p = config_plan(text);
		for (char **w = p->without; *w; w++) {
			strcat(found, *w);
			strcat(found, " ");
		}
		CHECK_STR(found, cases[i].without);
		plan_free(p);
	}
}

TEST(options_of_unwinders)
{
	struct plan *p = config_plan(
		"sink.box { dir = '/x' } unwind.snake { depth = 9 } unwind.gem {}");
	struct unwinder_options list[PLAN_MAX_UNWINDERS];
	struct unwinder_choice c = plan_unwinders(p, list);

	CHECK_INT(c.n, 2);
	CHECK(!*c.without);
	CHECK_STR(list[0].name, "snake");
	CHECK_STR(list[0].where, "s.lua:1");
	CHECK_INT(list[0].n, 1);
	CHECK_STR(list[0].options[0].value.text, "9");
	CHECK_INT(list[1].n, 0);
	plan_free(p);
}

TEST(flags_of_unwinders)
{
	static const struct {
		const char *flag, *error;
	} wrong[] = {
		{"snake:depth=100",
		 "--unwind: unwind.snake: option 'depth': 100 is outside 1 to 99"},
		{"snake:dept=1",
		 "--unwind: unwind.snake: unknown option 'dept' (did you mean 'depth'?)"},
		{"snake:depth", "--unwind: unwind.snake: 'depth' must be option=value"},
		{"snak:depth=1", "--unwind: no 'unwind.snak' (did you mean 'unwind.snake'?)"},
		{"gem:enabled=perhaps",
		 "--unwind: unwind.gem: option 'enabled': 'perhaps' is not true or "
		 "false"},
	};
	const char *flags[] = {"snake:depth=12", "gem:enabled=false", "snake"};
	struct plan_flags f = {.unwinders = flags, .nunwinders = 2, .no_sinks = true};
	struct unwinder_options list[PLAN_MAX_UNWINDERS];
	struct plan_errors errors;
	struct plan *p;

	CHECK_INT(plan_from_flags(&p, &f, &config_folder, &errors), 0);
	CHECK_STR(plan_unwinders(p, list).without[0], "gem");
	CHECK_STR(list[0].options[0].value.text, "12");
	plan_free(p);
	f.nunwinders = 3;
	CHECK_INT(plan_from_flags(&p, &f, &config_folder, &errors), -EINVAL);
	CHECK_STR(errors.texts[0], "--unwind: unwind.snake: given twice, first at --unwind");
	plan_errors_fini(&errors);
	f.nunwinders = 1;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		flags[0] = wrong[i].flag;
		CHECK_INT(plan_from_flags(&p, &f, &config_folder, &errors), -EINVAL);
		CHECK_STR(errors.texts[0], wrong[i].error);
		plan_errors_fini(&errors);
	}
}

/* The same instance after a reload has the same own options. */
TEST(identities)
{
	static const char *const same[] = {
		"sink.box { dir = '/x', headers = { b = '2', a = '1' }, level = 3, every = '5s' }",
		"-- further down\nsink.box { level = 3, headers = { a = '1', b = '2' }, dir = '/x' "
		"}",
	};
	static const char *const others[] = {
		"sink.box { dir = '/x', headers = { a = '1', b = '2' }, level = 4 }",
		"sink.box { dir = '/x', headers = { a = '1', b = '3' }, level = 3 }",
		"sink.box { dir = '/x', headers = { a = '1', b = '2', c = '' }, level = 3 }",
		"sink.box { dir = '/x', tags = { 'a', '1', 'b', '2' }, level = 3 }",
		"sink.box { dir = '/x', level = 3 }",
	};
	struct plan *a = config_plan(same[0]), *b = config_plan(same[1]);

	CHECK_STR(a->sinks[0]->identity, b->sinks[0]->identity);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct plan *c = config_plan(others[i]);

		CHECK(strcmp(a->sinks[0]->identity, c->sinks[0]->identity));
		plan_free(c);
	}
	plan_free(a);
	plan_free(b);
	/* two of the same have each their own, in order */
	a = config_plan("sink.box { dir = '/x' } sink.box { dir = '/x' }");
	b = config_plan("sink.box { dir = '/x' } sink.box { dir = '/y' } sink.box { dir = '/x' }");
	CHECK(strcmp(a->sinks[0]->identity, a->sinks[1]->identity));
	CHECK_STR(a->sinks[0]->identity, b->sinks[0]->identity);
	CHECK_STR(a->sinks[1]->identity, b->sinks[2]->identity);
	plan_free(a);
	plan_free(b);
}

TEST(flags)
{
	const char *sinks[] = {"box:dir=/var/a\\,b,level=3,omit=pid,tid,headers=a=1,b=x=y,tags=",
			       "box:dir=/x,every=2m,per=target,token=k=v\\\\"};
	const char *discoveries[] = {"keeper:url=http://h:1/x"};
	struct plan_flags f = {.sinks = sinks,
			       .nsinks = 2,
			       .discoveries = discoveries,
			       .ndiscoveries = 1,
			       .hz = 49,
			       .listen = "[::1]:80",
			       .control = "/run/c"};
	struct plan_errors errors;
	struct plan *p = of_flags(&errors, &f);
	const struct option_value *v;

	CHECK(!p->path && p->hz == 49);
	CHECK_STR(p->listen, "[::1]:80");
	CHECK_STR(p->control, "/run/c");
	CHECK_STR(option_of(p->sinks[0], "dir")->text, "/var/a,b");
	CHECK_STR(p->sinks[0]->where, "--sink");
	CHECK_STR(p->sinks[0]->omit[1], "tid");
	v = option_of(p->sinks[0], "headers");
	CHECK_INT(v->n, 2);
	CHECK_STR(v->pairs[1].key, "b");
	CHECK_STR(v->pairs[1].value, "x=y");
	CHECK_INT(option_of(p->sinks[0], "tags")->n, 0);
	CHECK_INT(p->sinks[1]->every_ns, 120000000000);
	CHECK_STR(option_of(p->sinks[1], "token")->text, "k=v\\");
	CHECK_STR(p->discoveries[0]->name, "discover.keeper");
	plan_free(p);
	f = (struct plan_flags){.sinks = sinks, .nsinks = 1};
	p = of_flags(&errors, &f);
	CHECK_STR(p->discoveries[0]->name, "discover.crowd");
	CHECK(p->hz == 19);
	plan_free(p);
}

TEST(wrong_flags)
{
	static const struct {
		const char *sink, *listen, *text;
		double hz;
	} cases[] = {
		{"bxo:dir=/x", NULL, "--sink: no 'sink.bxo' (did you mean 'sink.box'?)", 0},
		{"box", NULL, "--sink: sink.box: option 'dir' must be given", 0},
		{"box:dir", NULL, "--sink: sink.box: 'dir' must be option=value", 0},
		{"box:dir=/x,dri=/y", NULL,
		 "--sink: sink.box: unknown option 'dri' (did you mean 'dir'?)", 0},
		{"box:dir=/x,dir=/y", NULL, "--sink: sink.box: 'dir' is given twice", 0},
		{"box:dir=/x,headers=a", NULL, "--sink: sink.box: 'headers' must be name=value", 0},
		{"box:dir=/x,headers=a=b,c", NULL, "--sink: sink.box: 'c' must be name=value", 0},
		{"box:dir=/x,level=10", NULL,
		 "--sink: sink.box: option 'level': 10 is outside 1 to 9", 0},
		{"box:dir=/x", NULL, "option 'hz' must be a number from 0.1 to 20000, got '30000'",
		 30000},
		{"box:dir=/x", "9190",
		 "option 'listen' must be an address with a port, such as 127.0.0.1:9190, or "
		 "unix:/path, got '9190'",
		 0},
		{"box:dir=/x", "1.2.3.4:66000",
		 "option 'listen' must be an address with a port, such as 127.0.0.1:9190, or "
		 "unix:/path, got '1.2.3.4:66000'",
		 0},
	};
	struct plan_errors errors;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct plan_flags f = {.sinks = &cases[i].sink,
				       .nsinks = 1,
				       .hz = cases[i].hz,
				       .listen = cases[i].listen};

		of_flags(&errors, &f);
		CHECK_INT(errors.n, 1);
		CHECK_STR(errors.texts[0], cases[i].text);
		plan_errors_fini(&errors);
	}
	of_flags(&errors, &(struct plan_flags){0});
	CHECK_INT(errors.n, 1);
	plan_errors_fini(&errors);
}

TEST(json_is_what_the_plan_is)
{
	struct plan *p = config_plan("sink.box { dir = '/\"x\\n', token = 'sesame', level = 7 }");
	struct buf b = {0};

	CHECK_INT(plan_json(p, &b), 0);
	buf_add(&b, "", 1);
	CHECK(!strstr(b.p, "sesame") && strstr(b.p, "\"token\":\"(hidden)\""));
	CHECK(strstr(b.p, "\"dir\":\"/\\\"x\\") && strstr(b.p, "\"level\":7"));
	CHECK(strstr(b.p, "\"headers\":{}") && strstr(b.p, "\"tags\":[]"));
	buf_fini(&b);
	plan_free(p);
}

static uint64_t cost(const char *text, const char *pattern, enum pattern_search search)
{
	struct pattern_text t = {text, strlen(text)}, p = {pattern, strlen(pattern)};

	return pattern_cost(t, p, 0, search, 1000000);
}

TEST(costs_of_patterns)
{
	char text[401];

	memset(text, 'a', 400);
	text[400] = '\0';
	CHECK(cost("fusee.lua", "^(%w+)%.lua$", PATTERN_FIRST) < 60);
	CHECK(cost("k=v, l=w", "(%w+)=(%w+)", PATTERN_GMATCH) < 60);
	CHECK(cost(text, "b", PATTERN_FIRST) < 2000);
	CHECK(cost(text, "a*b", PATTERN_FIRST) > 80000);        /* the square of 400, halved */
	CHECK(cost(text, "^a*b", PATTERN_FIRST) < 2000);        /* of one place only */
	CHECK(cost(text, "^a*b", PATTERN_GMATCH) < 2000);       /* '^' is a letter there */
	CHECK_INT(cost(text, "a*a*b", PATTERN_FIRST), 1000001); /* the cube: stopped */
	CHECK_INT(cost(text, ".-.-.-.-b", PATTERN_ALL), 1000001);
	/* malformed values end where they are wrong */
	CHECK(cost(text, "[", PATTERN_FIRST) < 10);
	CHECK(cost(text, "%", PATTERN_FIRST) < 10);
	CHECK(cost(text, "(a", PATTERN_FIRST) < 10);
	CHECK(cost(text, "a)", PATTERN_FIRST) < 10);
	CHECK(cost(text, "%f", PATTERN_FIRST) < 10);
	CHECK(cost(text, "%b", PATTERN_FIRST) < 10);
	CHECK(cost(text, "%1", PATTERN_FIRST) < 10);
	CHECK(cost(text, "[a-", PATTERN_FIRST) < 10);
	CHECK(cost(text, "[%", PATTERN_FIRST) < 10);
}
