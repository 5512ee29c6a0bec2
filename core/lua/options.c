// SPDX-License-Identifier: Apache-2.0
#include "lua/internal/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/assert.h"
#include "config/settings.h"

struct reading {
	struct lua_options *options;
	const char *what, *where; /* the constructor and its place */
};

static char *copy(struct lua_options *o, const char *text)
{
	char *p = strdup(text);

	if (!p)
		o->builder->no_memory = true;
	return p;
}

static const char *type_in_words(uint32_t type)
{
	switch (type) {
	case FUSEE_BOOL:
		return "true or false";
	case FUSEE_INT:
		return "an integer";
	case FUSEE_SIZE:
		return "a size such as \"64MiB\"";
	case FUSEE_DURATION:
		return "a duration such as \"10s\"";
	case FUSEE_PERCENT:
		return "a share such as \"5%\"";
	case FUSEE_LIST:
		return "a list of strings";
	case FUSEE_MAP:
		return "a table of strings by name";
	case PLAN_NUMBER:
		return "a number";
	default:
		return "a string";
	}
}

static void wrong_type(struct reading *r, const struct fusee_option *o, const char *got)
{
	plan_builder_error(r->options->builder, r->where, "%s: option '%s' must be %s, got %s",
			   r->what, o->name, type_in_words(o->type), got);
}

/* The string on top of the stack. NULL: it is none or contains a zero byte; recorded. */
static const char *plain_string(lua_State *L, struct reading *r, const struct fusee_option *o)
{
	size_t len;
	const char *text;

	if (lua_type(L, -1) != LUA_TSTRING) {
		wrong_type(r, o, luaL_typename(L, -1));
		return NULL;
	}
	text = lua_tolstring(L, -1, &len);
	if (strlen(text) == len)
		return text;
	wrong_type(r, o, "a string with a zero byte in it");
	return NULL;
}

/* The text of the value on top of the stack. NULL: its type is wrong; recorded. */
static const char *scalar(lua_State *L, struct reading *r, const struct fusee_option *o,
			  char number[40])
{
	int is_integer;

	switch (o->type) {
	case FUSEE_BOOL:
		if (lua_isboolean(L, -1))
			return lua_toboolean(L, -1) ? "true" : "false";
		break;
	case FUSEE_SIZE: /* also bytes, which a script may have computed */
	case FUSEE_INT:
		if (o->type == FUSEE_SIZE && lua_type(L, -1) != LUA_TNUMBER)
			return plain_string(L, r, o);
		if (lua_type(L, -1) != LUA_TNUMBER)
			break;
		snprintf(number, 40, "%lld", (long long)lua_tointegerx(L, -1, &is_integer));
		if (is_integer)
			return number;
		wrong_type(r, o, lua_pushfstring(L, "%f", lua_tonumber(L, -1)));
		lua_pop(L, 1);
		return NULL;
	case PLAN_NUMBER:
		if (lua_type(L, -1) != LUA_TNUMBER)
			break;
		snprintf(number, 40, "%.14g", lua_tonumber(L, -1));
		return number;
	default:
		return plain_string(L, r, o);
	}
	wrong_type(r, o, luaL_typename(L, -1));
	return NULL;
}

static bool add_pair(struct lua_options *o, struct option_value *v, const char *key,
		     const char *value)
{
	struct option_pair *all = realloc(v->pairs, (v->n + 1) * sizeof(*all)), *p;

	if (!all) {
		o->builder->no_memory = true;
		return false;
	}
	v->pairs = all;
	p = &all[v->n++];
	p->key = key ? copy(o, key) : NULL;
	p->value = copy(o, value);
	return p->value && (p->key || !key);
}

/* The list on top of the stack. */
static bool read_list(lua_State *L, struct reading *r, const struct fusee_option *o,
		      struct option_value *v)
{
	lua_Integer n = (lua_Integer)lua_rawlen(L, -1), entries = 0;
	bool good = true;

	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		entries++;
	if (entries != n) {
		wrong_type(r, o, "a table with names or gaps");
		return false;
	}
	v->kind = OPTION_LIST;
	for (lua_Integer i = 1; good && i <= n; i++) {
		const char *text;

		lua_rawgeti(L, -1, i);
		text = plain_string(L, r, o);
		good = text && add_pair(r->options, v, NULL, text);
		lua_pop(L, 1);
	}
	return good;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct option_pair *)a)->key, ((const struct option_pair *)b)->key);
}

static bool read_map(lua_State *L, struct reading *r, const struct fusee_option *o,
		     struct option_value *v)
{
	bool good = true;

	v->kind = OPTION_MAP;
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
		const char *text;

		if (lua_type(L, -2) != LUA_TSTRING) {
			wrong_type(r, o, "values without names");
			lua_pop(L, 2);
			return false;
		}
		text = plain_string(L, r, o);
		good = text && add_pair(r->options, v, lua_tostring(L, -2), text);
		if (!good) {
			lua_pop(L, 2);
			return false;
		}
	}
	if (v->n)
		qsort(v->pairs, v->n, sizeof(*v->pairs), by_key);
	return good;
}

/* Reads the value on top of the stack. v->kind 0: its type is wrong; recorded. */
static void read_value(lua_State *L, struct reading *r, const struct fusee_option *o,
		       struct option_value *v)
{
	bool table = o->type == FUSEE_LIST || o->type == FUSEE_MAP, good = false;
	const char *text;
	char number[40];

	if (o->type == PLAN_RULES) { /* read by relabel.c */
		v->text = copy(r->options, "");
		v->kind = v->text ? OPTION_TEXT : 0;
		return;
	}
	if (!table) {
		text = scalar(L, r, o, number);
		v->text = text ? copy(r->options, text) : NULL;
		v->kind = v->text ? OPTION_TEXT : 0;
		return;
	}
	if (lua_istable(L, -1))
		good = o->type == FUSEE_LIST ? read_list(L, r, o, v) : read_map(L, r, o, v);
	else
		wrong_type(r, o, luaL_typename(L, -1));
	if (!good)
		option_value_fini(v);
}

/* Reads only the names, in Lua's order. A value without a name is an error. */
static void read_names(lua_State *L, struct reading *r, int index)
{
	struct lua_options *o = r->options;

	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
		struct instance_option *all;

		if (lua_type(L, -2) != LUA_TSTRING) {
			plan_builder_error(o->builder, r->where,
					   "%s: unexpected unnamed value: write option = value",
					   r->what);
			continue;
		}
		all = realloc(o->list, (o->n + 1) * sizeof(*all));
		if (!all) {
			o->builder->no_memory = true;
			continue;
		}
		o->list = all;
		all[o->n] = (struct instance_option){.name = copy(o, lua_tostring(L, -2))};
		o->n += all[o->n].name != NULL;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct instance_option *)a)->name,
		      ((const struct instance_option *)b)->name);
}

void lua_options_read(lua_State *L, struct lua_options *options, const char *what,
		      const char *where, int index, lua_options_known *known, const void *arg)
{
	struct reading r = {options, what, where};

	fusee_assert(!options->n);
	read_names(L, &r, index);
	/* Lua's order differs from run to run; the order of error messages must not */
	if (options->n)
		qsort(options->list, options->n, sizeof(*options->list), by_name);
	for (uint32_t i = 0; i < options->n; i++) {
		struct instance_option *o = &options->list[i];
		const struct fusee_option *option = known(arg, o->name);

		if (option) {
			lua_pushstring(L, o->name);
			lua_rawget(L, index);
			read_value(L, &r, option, &o->value);
			lua_pop(L, 1);
		} else {
			o->value.text = copy(options, "");
			o->value.kind = o->value.text ? OPTION_TEXT : 0;
		}
	}
}

void lua_options_fini(struct lua_options *o)
{
	instance_option_list_free(o->list, o->n);
	o->list = NULL;
	o->n = 0;
}
