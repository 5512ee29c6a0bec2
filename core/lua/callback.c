// SPDX-License-Identifier: Apache-2.0
#include "lua/callback.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/guess.h"
#include "base/metrics.h"
#include "base/str.h"
#include "base/text.h"
#include "lua/internal/action.h"
#include "lua/internal/api.h"
#include "lua/internal/call.h"
#include "lua/internal/library.h"
#include "lua/internal/profile.h"
#include "lua/internal/target.h"
#include "target/labelset.h"

#define CALLBACKS "fusee.callbacks" /* the functions by number, in the registry */
#define TARGET_TYPE "fusee.target"  /* the metatable of targets, in the registry */
#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)
#define MAX_COUNT_LABELS 8

/* ---- declarations ---- */

/* The period in ns, or 0: recorded. */
static uint64_t period_of(struct api *a, const char *text, const char *where)
{
	uint64_t ns;

	if (!text_duration(text, &ns) && ns >= SECOND && ns <= DAY)
		return ns;
	plan_builder_error(&a->builder, where,
			   "every: the period must be a duration from 1s to 1d, got '%.60s'", text);
	return 0;
}

/* Adds the function at 2 of the stack. */
static void declare(lua_State *L, struct api *a, const char *what, const char *where, uint64_t ns)
{
	struct plan *p = a->builder.plan;

	if (p->callbacks.n == PLAN_MAX_CALLBACKS) {
		plan_builder_error(&a->builder, where, "%s: more than %d callbacks", what,
				   PLAN_MAX_CALLBACKS);
		return;
	}
	lua_getfield(L, LUA_REGISTRYINDEX, CALLBACKS);
	lua_pushvalue(L, 2);
	lua_rawseti(L, -2, p->callbacks.n + 1);
	p->callbacks.list[p->callbacks.n] = (struct plan_callback){ns, strdup(where)};
	a->builder.no_memory |= !p->callbacks.list[p->callbacks.n++].where;
}

static int declare_every(lua_State *L)
{
	struct api *a = api_of(L, "every");
	char where[SCRIPT_WHERE];
	uint64_t ns;

	script_where(L, where);
	if (lua_gettop(L) != 2 || lua_type(L, 1) != LUA_TSTRING || !lua_isfunction(L, 2)) {
		plan_builder_error(&a->builder, where,
				   "every takes a duration and a function: every(\"1m\", "
				   "function() ... end)");
		return 0;
	}
	ns = period_of(a, lua_tostring(L, 1), where);
	if (ns)
		declare(L, a, "every", where, ns);
	return 0;
}

/* on("profile", f) */
static int declare_on(lua_State *L)
{
	struct api *a = api_of(L, "on");
	char where[SCRIPT_WHERE];

	script_where(L, where);
	if (lua_gettop(L) != 2 || lua_type(L, 1) != LUA_TSTRING || !lua_isfunction(L, 2) ||
	    strcmp(lua_tostring(L, 1), "profile")) {
		plan_builder_error(&a->builder, where,
				   "on takes \"profile\" and a function: on(\"profile\", "
				   "function(p) ... end)");
		return 0;
	}
	declare(L, a, "on", where, 0);
	return 0;
}

/* ---- targets ---- */

struct target_handle {
	uint64_t call; /* its number */
	uint32_t index;
};

/* Raises outside of a callback of every(). what: the function that was called. */
static struct callback_call *call_of(lua_State *L, const char *what)
{
	struct callback_call *call = script_of(L)->call;

	if (!call || !call->view)
		script_error(L, "%s can be called from a callback of every() only", what);
	return call;
}

static const struct callback_target *target_of(lua_State *L, int index)
{
	const struct target_handle *h = luaL_checkudata(L, index, TARGET_TYPE);
	const struct callback_call *call = call_of(L, "a target");

	if (h->call != call->number)
		script_error(L, "a target is valid until its callback returns: call targets() "
				"again");
	return &call->view->targets[h->index];
}

static void push_labels(lua_State *L, const struct callback_target *t)
{
	if (lua_getiuservalue(L, 1, 1) != LUA_TNIL)
		return;
	lua_pop(L, 1);
	target_push_labels(L, t->labels, t->nlabels);
	lua_pushvalue(L, -1);
	lua_setiuservalue(L, 1, 1);
}

static void push_pids(lua_State *L, const struct callback_target *t)
{
	lua_createtable(L, (int)t->npids, 0);
	for (uint32_t i = 0; i < t->npids; i++) {
		lua_pushinteger(L, t->pids[i]);
		lua_rawseti(L, -2, i + 1);
	}
}

static void push_hz(lua_State *L, const struct callback_target *t)
{
	lua_pushnumber(L, t->hz);
}

static void push_cpu(lua_State *L, const struct callback_target *t)
{
	lua_pushnumber(L, t->cpu);
}

static const struct {
	const char *name;
	void (*push)(lua_State *, const struct callback_target *);
} fields[] = {{"labels", push_labels}, {"pids", push_pids}, {"hz", push_hz}, {"cpu", push_cpu}};

/* Upvalue 1: the number of the method. */
static int call_method(lua_State *L)
{
	const struct target_method *m = &target_methods[lua_tointeger(L, lua_upvalueindex(1))];
	const struct target_handle *h = luaL_testudata(L, 1, TARGET_TYPE);
	struct callback_action action = {0};

	if (!h)
		return script_error(L, "%s is called as %s", m->name, m->usage);
	if (target_of(L, 1)->refused)
		return script_error(L, "%s: the policy does not profile this target", m->name);
	action.target = h->index;
	m->call(L, call_of(L, m->name)->actions, &action);
	return 0;
}

static int target_index(lua_State *L)
{
	const struct callback_target *t = target_of(L, 1);
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
	struct guess g = {.word = name};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (!strcmp(fields[i].name, name)) {
			fields[i].push(L, t);
			return 1;
		}
		guess_offer(&g, fields[i].name);
	}
	for (int i = 0; target_methods[i].name; i++) {
		if (!strcmp(target_methods[i].name, name)) {
			lua_pushinteger(L, i);
			lua_pushcclosure(L, call_method, 1);
			return 1;
		}
		guess_offer(&g, target_methods[i].name);
	}
	return script_error(L, "a target has no '%.60s'" GUESS_HINT, name,
			    GUESS_WORDS(g, ": there are labels, pids, hz, cpu, rate, drop, label "
					   "and profile"));
}

static int target_newindex(lua_State *L)
{
	return script_error(L, "a target cannot be assigned to");
}

/* targets(): a list of all targets. */
static int list_targets(lua_State *L)
{
	const struct callback_call *call = call_of(L, "targets");

	lua_createtable(L, (int)call->view->ntargets, 0);
	for (uint32_t i = 0; i < call->view->ntargets; i++) {
		struct target_handle *h = lua_newuserdatauv(L, sizeof(*h), 1);

		*h = (struct target_handle){call->number, i};
		luaL_setmetatable(L, TARGET_TYPE);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

/* ---- count ---- */

/* Appends the table of labels at index 3 to `pairs`, which has n strings. The table owns them. */
static uint32_t count_labels(lua_State *L, const char **pairs, uint32_t n)
{
	luaL_checktype(L, 3, LUA_TTABLE);
	for (lua_pushnil(L); lua_next(L, 3); lua_pop(L, 1)) {
		const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";

		if (!labelset_name(fusee_text(key)) || !strcmp(key, "event"))
			script_error(L, "count: '%.60s' cannot be the name of a label", key);
		if (lua_type(L, -1) != LUA_TSTRING)
			script_error(L, "count: label '%.60s' must be a string, got %s", key,
				     luaL_typename(L, -1));
		if (n == 2 * (MAX_COUNT_LABELS + 1))
			script_error(L, "count: more than %d labels", MAX_COUNT_LABELS);
		pairs[n++] = key;
		pairs[n++] = lua_tostring(L, -1);
	}
	return n;
}

/* count(event [, n [, labels]]) */
static int count_event(lua_State *L)
{
	const char *pairs[2 * (MAX_COUNT_LABELS + 1)] = {"event"};
	struct metric_labels labels = {pairs, 2};
	lua_Integer n = 1;

	if (script_of(L)->owner)
		script_error(L, "count can be called from the policy or a callback only");
	lua_settop(L, 3);
	if (lua_type(L, 1) != LUA_TSTRING)
		script_error(L, "count takes the name of an event, got %s", luaL_typename(L, 1));
	pairs[1] = lua_tostring(L, 1);
	if (!lua_isnil(L, 2))
		n = luaL_checkinteger(L, 2);
	if (n < 0)
		script_error(L, "count: the number must not be below 0");
	if (!lua_isnil(L, 3))
		labels.n = count_labels(L, pairs, labels.n);
	metric_add("script_events_total", "Total number of events that the script has counted.",
		   &labels, (uint64_t)n);
	return 0;
}

/* ---- running ---- */

static int run_callback(lua_State *L)
{
	const struct callback_call *call = lua_touserdata(L, 1);

	lua_getfield(L, LUA_REGISTRYINDEX, CALLBACKS);
	lua_rawgeti(L, -1, call->callback + 1);
	if (call->profile)
		profile_push(L);
	lua_call(L, !!call->profile, 0);
	return 0;
}

static int run(const struct plan *p, struct callback_call *call, char **text)
{
	struct script *s = p->script;
	char *why;
	int n, r;

	*text = NULL;
	call->number = ++s->calls;
	s->inside = "a callback";
	s->call = call;
	r = script_enter(s, run_callback, call, SCRIPT_CALL_NS, &n, &why);
	s->call = NULL;
	if (why)
		*text = script_sentence(p->callbacks.list[call->callback].where,
					call->profile ? "on" : "every", why);
	free(why);
	return r;
}

int lua_callback_run(const struct plan *p, uint32_t i, const struct callback_view *view,
		     struct callback_actions *actions, char **text)
{
	struct callback_call call = {.view = view, .actions = actions, .callback = i};
	int r = run(p, &call, text);

	if (r)
		callback_actions_fini(actions);
	return r;
}

int lua_callback_profile(const struct plan *p, uint32_t i, const struct callback_profile *profile,
			 char **text)
{
	struct callback_call call = {.profile = profile, .callback = i};

	return run(p, &call, text);
}

void callbacks_open(lua_State *L)
{
	static const luaL_Reg functions[] = {{"every", declare_every},
					     {"on", declare_on},
					     {"targets", list_targets},
					     {"count", count_event},
					     {NULL, NULL}};

	profile_open(L);
	luaL_newmetatable(L, TARGET_TYPE);
	lua_pushcfunction(L, target_index);
	lua_setfield(L, -2, "__index");
	lua_pushcfunction(L, target_newindex);
	lua_setfield(L, -2, "__newindex");
	lua_pushliteral(L, "target");
	lua_setfield(L, -2, "__metatable");
	lua_newtable(L);
	lua_setfield(L, LUA_REGISTRYINDEX, CALLBACKS);
	lua_getfield(L, LUA_REGISTRYINDEX, LIBRARY_GLOBALS);
	luaL_setfuncs(L, functions, 0);
	lua_pop(L, 2);
}
