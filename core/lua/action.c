// SPDX-License-Identifier: Apache-2.0
#include "lua/internal/action.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "lua/internal/api.h"
#include "lua/internal/state.h"
#include "target/labelset.h"

#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)
#define MAX_ACTIONS 65536u /* of a call */
#define MAX_VALUE 4096u    /* bytes of a label's value */

/* The argument as a time. */
static uint64_t time_of(lua_State *L, const char *method, int index)
{
	const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : "";
	uint64_t ns = 0;

	if (text_duration(text, &ns) || ns < SECOND || ns > DAY)
		script_error(L, "%s: the time must be a duration from 1s to 1d, got %s", method,
			     *text ? lua_pushfstring(L, "'%s'", text) : luaL_typename(L, index));
	return ns;
}

/* Appends the action and takes its texts over; on an error it frees them and raises. */
static void append(lua_State *L, struct callback_actions *all, const struct callback_action *a)
{
	struct callback_action *to = NULL;

	if (all->n < MAX_ACTIONS)
		to = ARRAY_ADD(all->list, all->n, all->cap);
	if (!to) {
		free(a->texts);
		script_error(L, all->n < MAX_ACTIONS
					? "not enough memory"
					: "more than 65536 targets are changed in a call");
		return;
	}
	*to = *a;
}

/* t:rate(hz, time) */
static void set_rate(lua_State *L, struct callback_actions *all, struct callback_action *a)
{
	a->kind = CALLBACK_RATE;
	a->hz = lua_type(L, 2) == LUA_TNUMBER ? lua_tonumber(L, 2) : 0;
	if (!(a->hz >= 0.1 && a->hz <= 20000))
		script_error(L, "rate: hz must be a number from 0.1 to 20000, got %s",
			     lua_type(L, 2) == LUA_TNUMBER ? lua_tostring(L, 2)
							   : luaL_typename(L, 2));
	a->ns = time_of(L, "rate", 3);
	append(L, all, a);
}

/* t:drop(time) */
static void drop(lua_State *L, struct callback_actions *all, struct callback_action *a)
{
	a->kind = CALLBACK_DROP;
	a->ns = time_of(L, "drop", 2);
	append(L, all, a);
}

/* t:label(name, value) */
static void add_label(lua_State *L, struct callback_actions *all, struct callback_action *a)
{
	size_t name_len = 0, len = 0;
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &name_len) : "";
	const char *value;

	if (!labelset_name((struct fusee_str){name, name_len}))
		script_error(L, "label: '%.60s' is not a label name: letters, digits and _", name);
	if (lua_type(L, 3) != LUA_TSTRING)
		script_error(L, "label: the value must be a string, got %s", luaL_typename(L, 3));
	value = lua_tolstring(L, 3, &len);
	if (len > MAX_VALUE)
		script_error(L, "label: the value has %zu bytes: at most %u", len, MAX_VALUE);
	a->kind = CALLBACK_LABEL;
	a->texts = malloc(name_len + len + 1);
	if (!a->texts)
		script_error(L, "not enough memory");
	memcpy(mempcpy(a->texts, name, name_len), value, len);
	a->label = (struct fusee_label){.key = {a->texts, name_len},
					.str = {a->texts + name_len, len}};
	append(L, all, a);
}

/* t:profile(sink, time) */
static void profile(lua_State *L, struct callback_actions *all, struct callback_action *a)
{
	const struct api_handle *h = api_handle(L, 2);

	if (!h)
		script_error(L, "profile: the sink must be what sink.NAME { ... } returned, got %s",
			     luaL_typename(L, 2));
	a->kind = CALLBACK_PROFILE;
	a->sink = h->sink;
	a->ns = time_of(L, "profile", 3);
	append(L, all, a);
}

const struct target_method target_methods[] = {
	{"rate", "t:rate(hz, \"30s\")", set_rate},
	{"drop", "t:drop(\"30s\")", drop},
	{"label", "t:label(\"name\", \"value\")", add_label},
	{"profile", "t:profile(sink, \"30s\")", profile},
	{0},
};

void callback_actions_fini(struct callback_actions *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->list[i].texts);
	free(all->list);
	*all = (struct callback_actions){0};
}
