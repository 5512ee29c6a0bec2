// SPDX-License-Identifier: Apache-2.0
#include "lua/internal/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/guess.h"
#include "config/help.h"
#include "lua/internal/library.h"
#include "lua/internal/probe.h"
#include "lua/internal/relabel.h"
#include "config/settings.h"

#define HANDLE_TYPE "fusee.handle" /* the metatable of handles, in the registry */

/* ---- handles ---- */

const struct api_handle *api_handle(lua_State *L, int index)
{
	return luaL_testudata(L, index, HANDLE_TYPE);
}

static void push_handle(lua_State *L, uint32_t sink, const char *name)
{
	struct api_handle *h = lua_newuserdatauv(L, sizeof(*h), 0);

	h->sink = sink;
	snprintf(h->name, sizeof(h->name), "%s", name);
	luaL_setmetatable(L, HANDLE_TYPE);
}

static int handle_index(lua_State *L)
{
	const struct api_handle *h = api_handle(L, 1);

	return script_error(
		L, "%s has no fields: name it in 'to' of the table that the policy returns",
		h ? h->name : "?");
}

static int handle_text(lua_State *L)
{
	const struct api_handle *h = api_handle(L, 1);

	lua_pushstring(L, h ? h->name : "?");
	return 1;
}

/* ---- constructors ---- */

static const struct fusee_option *plugin_option(const void *arg, const char *name)
{
	const struct fusee_plugin *d = arg;

	return plan_option(d, name);
}

/* sink.X {..}, discover.X {..}, unwind.X {..}. Upvalue 1: the descriptor. */
static int construct(lua_State *L)
{
	const struct fusee_plugin *d = lua_touserdata(L, lua_upvalueindex(1));
	const char *name = lua_tostring(L, lua_upvalueindex(2));
	struct api *a = api_of(L, name);
	struct plan_instance *p = NULL;
	char where[SCRIPT_WHERE];
	struct instance_option *options;
	struct relabel_rules *rules;
	uint32_t n;

	script_where(L, where);
	if (api_is_one_table(L, a, name, where)) {
		if (d->kind == FUSEE_SINK)
			lua_relabel_of_sink(L, a, name, where);
		lua_options_read(L, &a->options, name, where, 1, plugin_option, d);
		options = a->options.list;
		n = a->options.n;
		a->options.list = NULL;
		a->options.n = 0;
		p = plan_builder_add(&a->builder, d, where, options, n);
		rules = lua_relabel_take(a);
		if (p)
			p->relabel = rules;
		else
			relabel_rules_free(rules);
	}
	if (d->kind != FUSEE_SINK)
		return 0;
	fusee_assert(!p || a->builder.plan->sinks[a->builder.plan->nsinks - 1] == p);
	push_handle(L, p ? a->builder.plan->nsinks - 1 : UINT32_MAX, p ? p->name : name);
	return 1;
}

/* The constructor of a plugin that does not exist, which is recorded. */
static int construct_nothing(lua_State *L)
{
	push_handle(L, UINT32_MAX, "?");
	return 1;
}

/* sample.cpu {..}, metrics {..}, control {..}. Upvalue 1: the group. */
static int configure(lua_State *L)
{
	const struct plan_settings *g = lua_touserdata(L, lua_upvalueindex(1));
	struct api *a = api_of(L, g->name);
	char where[SCRIPT_WHERE];

	script_where(L, where);
	if (!api_declare_once(a, g->name, where) || !api_is_one_table(L, a, g->name, where))
		return 0;
	api_set_group(L, a, g, where);
	lua_options_fini(&a->options);
	return 0;
}

/* ---- namespaces ---- */

/* sink.NAME, discover.NAME, unwind.NAME. Upvalue 1: the kind. */
static int plugin_constructor(lua_State *L)
{
	uint32_t kind = (uint32_t)lua_tointeger(L, lua_upvalueindex(1));
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
	struct api *a = api_of(L, plugin_kind_name(kind));
	char where[SCRIPT_WHERE];
	const struct plugin *p;

	script_where(L, where);
	p = plan_builder_plugin(&a->builder, kind, name, where);
	if (!p) {
		lua_pushcfunction(L, construct_nothing);
		return 1;
	}
	lua_pushlightuserdata(L, (void *)p->descriptor);
	lua_pushfstring(L, "%s.%s", plugin_kind_name(kind), name);
	lua_pushcclosure(L, construct, 2);
	return 1;
}

/* sample.cpu {..} and others of the core's, sample.probe {..}, and sample.NAME {..} of a sampler.
 * Upvalue 1: the kind. */
static int sample_constructor(lua_State *L)
{
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
	const struct plan_settings *g = plan_settings, *end = g + SETTINGS_METRICS;

	if (!strcmp(name, "probe")) {
		lua_pushcfunction(L, lua_probe_declare);
		return 1;
	}
	while (g < end && strcmp(g->name + strlen("sample."), name) != 0)
		g++;
	if (g == end)
		return plugin_constructor(L);
	lua_pushlightuserdata(L, (void *)g);
	lua_pushcclosure(L, configure, 1);
	return 1;
}

/* Upvalue 1: the namespace's name. */
static int refuse_assignment(lua_State *L)
{
	const char *space = lua_tostring(L, lua_upvalueindex(1));
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";

	return script_error(L, "'%s.%.60s' cannot be assigned to: write %s.%.60s { ... }", space,
			    name, space, name);
}

static int refuse_call(lua_State *L)
{
	const char *space = lua_tostring(L, lua_upvalueindex(1));

	return script_error(L, "'%s' is not a function: write %s.NAME { ... }", space, space);
}

/* ---- functions ---- */

static int declare_unknown(lua_State *L)
{
	struct api *a = api_of(L, "unknown");
	const char *what = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
	char where[SCRIPT_WHERE];

	script_where(L, where);
	if (!api_declare_once(a, "unknown", where))
		return 0;
	if (lua_gettop(L) == 1 && (!strcmp(what, "keep") || !strcmp(what, "drop")))
		a->builder.plan->unknown_keep = *what == 'k';
	else
		plan_builder_error(&a->builder, where, "unknown takes \"keep\" or \"drop\", got %s",
				   *what ? lua_pushfstring(L, "'%s'", what) : luaL_typename(L, 1));
	return 0;
}

static int declare_policy(lua_State *L)
{
	struct api *a = api_of(L, "policy");
	char where[SCRIPT_WHERE];

	script_where(L, where);
	if (!api_declare_once(a, "policy", where))
		return 0;
	if (lua_gettop(L) != 1 || !lua_isfunction(L, 1)) {
		plan_builder_error(&a->builder, where, "policy takes one function, got %s",
				   luaL_typename(L, 1));
		return 0;
	}
	lua_setfield(L, LUA_REGISTRYINDEX, API_POLICY);
	a->builder.plan->has_policy = true;
	snprintf(script_of(L)->policy_where, SCRIPT_WHERE, "%s", where);
	return 0;
}

/* relabel { {..}, {..} } */
static int declare_relabel(lua_State *L)
{
	struct api *a = api_of(L, "relabel");
	char where[SCRIPT_WHERE];

	script_where(L, where);
	if (!api_declare_once(a, "relabel", where))
		return 0;
	if (lua_gettop(L) == 1)
		lua_relabel_read(L, a, 1, "relabel", where);
	else
		plan_builder_error(&a->builder, where, "relabel takes one list of rules");
	a->builder.plan->relabel = lua_relabel_take(a);
	return 0;
}

static int print_help(lua_State *L)
{
	struct api *a = api_of(L, "help");
	const char *topic = luaL_optstring(L, 1, "");
	struct buf b = {0};
	int r = help_topic(&b, a->builder.folder, topic, 78);

	if (!r)
		buf_write(&b, 2);
	buf_fini(&b);
	if (r == -ENOENT)
		return script_error(L, "help: no '%.60s'", topic);
	return r ? luaL_error(L, "not enough memory") : 0;
}

/* ---- opening ---- */

/* Adds a table whose fields `index` makes when they are read. The globals are on top of the stack.
 */
static void add_namespace(lua_State *L, const char *name, lua_CFunction index, uint32_t kind)
{
	lua_newtable(L);
	lua_newtable(L);
	lua_pushinteger(L, kind);
	lua_pushcclosure(L, index, 1);
	lua_setfield(L, -2, "__index");
	lua_pushstring(L, name);
	lua_pushcclosure(L, refuse_assignment, 1);
	lua_setfield(L, -2, "__newindex");
	lua_pushstring(L, name);
	lua_pushcclosure(L, refuse_call, 1);
	lua_setfield(L, -2, "__call");
	lua_pushstring(L, name);
	lua_setfield(L, -2, "__metatable");
	lua_setmetatable(L, -2);
	lua_setfield(L, -2, name);
}

static void make_handle_type(lua_State *L)
{
	luaL_newmetatable(L, HANDLE_TYPE);
	lua_pushcfunction(L, handle_index);
	lua_setfield(L, -2, "__index");
	lua_pushcfunction(L, handle_index);
	lua_setfield(L, -2, "__newindex");
	lua_pushcfunction(L, handle_text);
	lua_setfield(L, -2, "__tostring");
	lua_pushliteral(L, "sink");
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}

void api_open(lua_State *L)
{
	static const luaL_Reg functions[] = {{"unknown", declare_unknown},
					     {"policy", declare_policy},
					     {"relabel", declare_relabel},
					     {"help", print_help},
					     {NULL, NULL}};

	make_handle_type(L);
	lua_getfield(L, LUA_REGISTRYINDEX, LIBRARY_GLOBALS);
	luaL_setfuncs(L, functions, 0);
	for (uint32_t i = SETTINGS_METRICS; i < SETTINGS_N; i++) {
		lua_pushlightuserdata(L, (void *)&plan_settings[i]);
		lua_pushcclosure(L, configure, 1);
		lua_setfield(L, -2, plan_settings[i].name);
	}
	add_namespace(L, plugin_kind_name(FUSEE_SAMPLER), sample_constructor, FUSEE_SAMPLER);
	add_namespace(L, plugin_kind_name(FUSEE_UNWINDER), plugin_constructor, FUSEE_UNWINDER);
	add_namespace(L, plugin_kind_name(FUSEE_DISCOVERY), plugin_constructor, FUSEE_DISCOVERY);
	add_namespace(L, plugin_kind_name(FUSEE_SINK), plugin_constructor, FUSEE_SINK);
	lua_pop(L, 1);
}
