// SPDX-License-Identifier: Apache-2.0
#include "lua/internal/target.h"

#include <stdbool.h>

#include "lua/internal/state.h"
#include "lua/policy.h"

static int read_only(lua_State *L)
{
	return script_error(L, script_of(L)->call
				       ? "write t:label(\"name\", \"value\") to add a label"
				       : "a target cannot be changed: return the answer");
}

static int no_field(lua_State *L)
{
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";

	return script_error(L, "a target has no '%.60s': there is t.labels", name);
}

static int next_label(lua_State *L)
{
	lua_settop(L, 2);
	return lua_next(L, lua_upvalueindex(1)) ? 2 : 0;
}

/* Upvalue 1: the table of labels, which the script has no other access to. */
static int watched_label(lua_State *L)
{
	struct policy_watch *w = script_of(L)->watch;
	struct fusee_str name = {0};

	if (lua_type(L, 2) == LUA_TSTRING)
		name.p = lua_tolstring(L, 2, &name.len);
	if (w && name.p && w->may_change(w->arg, name))
		w->requested = true;
	lua_settop(L, 2);
	lua_rawget(L, lua_upvalueindex(1));
	return 1;
}

/* Upvalue 1: the same. */
static int each_label(lua_State *L)
{
	if (script_of(L)->watch)
		script_of(L)->watch->requested = true;
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_pushcclosure(L, next_label, 1);
	return 1;
}

/* Replaces the table on top by an empty table through which it can be read but not changed. */
static void make_read_only(lua_State *L, bool fields)
{
	lua_newtable(L);
	lua_newtable(L);
	if (fields) {
		lua_newtable(L);
		lua_pushcfunction(L, no_field);
		lua_setfield(L, -2, "__index");
		lua_setmetatable(L, -4);
	}
	lua_pushvalue(L, -3);
	if (script_of(L)->watch && !fields)
		lua_pushcclosure(L, watched_label, 1);
	lua_setfield(L, -2, "__index");
	lua_pushcfunction(L, read_only);
	lua_setfield(L, -2, "__newindex");
	lua_pushvalue(L, -3);
	lua_pushcclosure(L, each_label, 1);
	lua_setfield(L, -2, "__pairs");
	lua_pushliteral(L, "target");
	lua_setfield(L, -2, "__metatable");
	lua_setmetatable(L, -2);
	lua_remove(L, -2);
}

void target_push_labels(lua_State *L, const struct fusee_label *labels, uint32_t n)
{
	lua_createtable(L, 0, (int)n);
	for (uint32_t i = 0; i < n; i++) {
		const struct fusee_label *l = &labels[i];

		if (!l->str.p)
			continue;
		lua_pushlstring(L, l->key.p, l->key.len);
		lua_pushlstring(L, l->str.p, l->str.len);
		lua_rawset(L, -3);
	}
	make_read_only(L, false);
}

void target_push(lua_State *L, const struct fusee_label *labels, uint32_t n)
{
	lua_newtable(L);
	target_push_labels(L, labels, n);
	lua_setfield(L, -2, "labels");
	make_read_only(L, true);
}
