// SPDX-License-Identifier: Apache-2.0
#include "lua/policy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/guess.h"
#include "base/str.h"
#include "lua/internal/api.h"
#include "lua/internal/state.h"
#include "lua/internal/target.h"
#include "config/plan.h"

_Static_assert(PLAN_MAX_SINKS == 64, "the bits of policy_answer.sinks");

#define MAX_TEXTS 65536u
#define MAX_TEXT_BYTES (4u << 20)

struct question {
	const struct plan *plan;
	const struct fusee_label *labels;
	uint32_t n;
	struct policy_answer *answer;
	bool no_memory;
	char wrong[512]; /* what is wrong with the answer; "" nothing */
};

/* ---- the answer ---- */

static void wrong(struct question *q, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void wrong(struct question *q, const char *format, ...)
{
	va_list ap;

	if (*q->wrong)
		return;
	va_start(ap, format);
	vsnprintf(q->wrong, sizeof(q->wrong), format, ap);
	va_end(ap);
}

/* The value on top for a sentence: 'fast', 7, true, table. */
static const char *in_words(lua_State *L, char text[80])
{
	if (lua_type(L, -1) == LUA_TSTRING)
		snprintf(text, 80, "'%.60s'", lua_tostring(L, -1));
	else if (lua_type(L, -1) == LUA_TNUMBER)
		snprintf(text, 80, "%.14g", lua_tonumber(L, -1));
	else if (lua_isboolean(L, -1))
		snprintf(text, 80, "%s", lua_toboolean(L, -1) ? "true" : "false");
	else
		snprintf(text, 80, "%s", luaL_typename(L, -1));
	return text;
}

static void answer_hz(lua_State *L, struct question *q)
{
	double hz = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
	char text[80];

	if (hz >= 0.1 && hz <= 20000)
		q->answer->hz = hz;
	else
		wrong(q, "'hz' must be a number from 0.1 to 20000, got %s", in_words(L, text));
}

static bool is_label_name(const char *name, size_t len)
{
	size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_");

	return len && len <= 128 && good == len && !(*name >= '0' && *name <= '9');
}

/* A copy that the plan owns. */
static struct fusee_str keep(struct question *q, const char *text, size_t len)
{
	struct dict *d = &q->plan->script->texts;
	uint32_t id = dict_find(d, text, len);

	if (id == DICT_NONE && (d->n >= MAX_TEXTS || d->bytes + len > MAX_TEXT_BYTES)) {
		wrong(q, "it has returned too many different labels: %u texts", d->n);
		return (struct fusee_str){"", 0};
	}
	if (id == DICT_NONE)
		id = dict_add(d, text, len);
	if (id == DICT_NONE) {
		q->no_memory = true;
		return (struct fusee_str){"", 0};
	}
	return (struct fusee_str){len ? d->entries[id].key : "", len};
}

static void answer_label(lua_State *L, struct question *q)
{
	struct policy_answer *a = q->answer;
	const char *name, *value;
	size_t name_len, len;

	if (lua_type(L, -2) != LUA_TSTRING) {
		wrong(q, "'labels' must be a table { name = \"value\" }, got a value without name");
		return;
	}
	name = lua_tolstring(L, -2, &name_len);
	if (!is_label_name(name, name_len)) {
		wrong(q, "'%.60s' is not a label name: letters, digits and _", name);
		return;
	}
	if (lua_type(L, -1) != LUA_TSTRING) {
		wrong(q, "label '%.60s' must be a string, got %s", name, luaL_typename(L, -1));
		return;
	}
	if (a->nlabels == POLICY_MAX_LABELS) {
		wrong(q, "more than %d labels", POLICY_MAX_LABELS);
		return;
	}
	value = lua_tolstring(L, -1, &len);
	if (len > 4096) {
		wrong(q, "label '%.60s' has %zu bytes: at most 4096", name, len);
		return;
	}
	a->labels[a->nlabels++] = (struct fusee_label){.key = keep(q, name, name_len),
						       .str = keep(q, value, len)};
}

static int by_key(const void *a, const void *b)
{
	return str_order(((const struct fusee_label *)a)->key,
			 ((const struct fusee_label *)b)->key);
}

static void answer_labels(lua_State *L, struct question *q)
{
	if (!lua_istable(L, -1)) {
		wrong(q, "'labels' must be a table { name = \"value\" }, got %s",
		      luaL_typename(L, -1));
		return;
	}
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		answer_label(L, q);
	qsort(q->answer->labels, q->answer->nlabels, sizeof(*q->answer->labels), by_key);
}

static void answer_sink(lua_State *L, struct question *q)
{
	const struct api_handle *h = api_handle(L, -1);
	char text[80];

	if (!h && lua_isfunction(L, -1))
		wrong(q, "'to' holds a function: give what sink.NAME { ... } returned");
	else if (!h)
		wrong(q, "'to' must be a list of what sink.NAME { ... } returned, got %s",
		      in_words(L, text));
	else if (h->sink >= q->plan->nsinks)
		wrong(q, "'to' holds a sink that is not in the plan");
	else if (q->answer->sinks & UINT64_C(1) << h->sink)
		wrong(q, "'to' holds %s twice", h->name);
	else
		q->answer->sinks |= UINT64_C(1) << h->sink;
}

static void answer_to(lua_State *L, struct question *q)
{
	lua_Integer n, entries = 0;

	q->answer->sinks = 0;
	if (!lua_istable(L, -1)) {
		answer_sink(L, q);
		return;
	}
	n = (lua_Integer)lua_rawlen(L, -1);
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		entries++;
	if (!entries)
		wrong(q, "'to' is empty: return false to profile nothing");
	else if (entries != n || n > PLAN_MAX_SINKS)
		wrong(q, "'to' must be a list of sinks: a variable in it may be nil");
	for (lua_Integer i = 1; !*q->wrong && i <= n; i++) {
		lua_rawgeti(L, -1, i);
		answer_sink(L, q);
		lua_pop(L, 1);
	}
}

static void unknown_field(lua_State *L, struct question *q)
{
	struct guess g;

	if (lua_type(L, -2) != LUA_TSTRING) {
		wrong(q, "unexpected unnamed value: hz, labels and to have names");
		return;
	}
	g = (struct guess){.word = lua_tostring(L, -2)};
	guess_offer(&g, "hz");
	guess_offer(&g, "labels");
	guess_offer(&g, "to");
	wrong(q, "unknown '%.60s'" GUESS_HINT, g.word,
	      GUESS_WORDS(g, ": there are hz, labels and to"));
}

static void answer_table(lua_State *L, struct question *q)
{
	static const struct {
		const char *name;
		void (*read)(lua_State *, struct question *);
	} fields[] = {{"hz", answer_hz}, {"labels", answer_labels}, {"to", answer_to}};
	size_t known = 0, all = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		lua_pushstring(L, fields[i].name);
		if (lua_rawget(L, -2) != LUA_TNIL) {
			known++;
			fields[i].read(L, q);
		}
		lua_pop(L, 1);
	}
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
		const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";

		all++;
		if (all > known ||
		    (strcmp(name, "hz") && strcmp(name, "labels") && strcmp(name, "to")))
			unknown_field(L, q);
	}
}

static int call_policy(lua_State *L)
{
	struct question *q = lua_touserdata(L, 1);
	char text[80];

	lua_getfield(L, LUA_REGISTRYINDEX, API_POLICY);
	target_push(L, q->labels, q->n);
	lua_call(L, 1, LUA_MULTRET);
	if (lua_gettop(L) > 2)
		wrong(q, "it returned %d values, not one", lua_gettop(L) - 1);
	else if (lua_gettop(L) < 2 || lua_isnil(L, -1))
		return 0;
	else if (lua_isboolean(L, -1))
		q->answer->profile = lua_toboolean(L, -1);
	else if (lua_istable(L, -1))
		answer_table(L, q);
	else
		wrong(q, "it must return nil, true, false or a table, got %s", in_words(L, text));
	return 0;
}

static void set_defaults(const struct plan *plan, struct policy_answer *d)
{
	fusee_assert(plan->nsinks <= PLAN_MAX_SINKS);
	*d = (struct policy_answer){
		.profile = true, .hz = plan->hz, .pulled = plan->pulls.served && !plan->nsinks};
	for (uint32_t i = 0; i < plan->nsinks; i++)
		d->sinks |= (uint64_t)plan->sinks[i]->by_default << i;
}

bool lua_policy_is_early(const struct plan *plan)
{
	return plan->has_policy && !plan->callbacks.n;
}

int lua_policy_ask_early(const struct plan *plan, const struct fusee_label *labels, uint32_t n,
			 struct policy_answer *ret, struct policy_watch *watch)
{
	char *text;
	int r;

	watch->requested |= !lua_policy_is_early(plan);
	if (watch->requested)
		return 0;
	plan->script->watch = watch;
	r = lua_policy_ask(plan, labels, n, ret, &text);
	plan->script->watch = NULL;
	free(text);
	watch->requested |= r == -EINVAL;
	return r == -ENOMEM ? r : 0;
}

int lua_policy_ask(const struct plan *plan, const struct fusee_label *labels, uint32_t n,
		   struct policy_answer *ret, char **text)
{
	struct script *p = plan->script;
	struct question q = {.plan = plan, .labels = labels, .n = n, .answer = ret};
	char *why = NULL;
	int r, values;

	*text = NULL;
	set_defaults(plan, ret);
	if (!plan->has_policy)
		return 0;
	p->inside = "the policy";
	r = script_enter(p, call_policy, &q, SCRIPT_CALL_NS, &values, &why);
	if (!r && *q.wrong)
		r = -EINVAL;
	else if (!r && q.no_memory)
		r = -ENOMEM;
	if (r) {
		set_defaults(plan, ret);
		*text = script_sentence(p->policy_where, "policy",
					why            ? why
					: r == -ENOMEM ? strerror(ENOMEM)
						       : q.wrong);
	}
	free(why);
	return r == -ENOMEM ? r : r ? -EINVAL : 0;
}

void lua_policy_collect(const struct plan *plan)
{
	if (plan->script)
		script_collect(plan->script);
}

uint64_t lua_policy_memory(const struct plan *plan)
{
	return plan->script ? plan->script->used + plan->script->texts.bytes : 0;
}
