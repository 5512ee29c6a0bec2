/* SPDX-License-Identifier: Apache-2.0 */
/* Reads options from a table of the script. */
#ifndef LUA_OPTIONS_H
#define LUA_OPTIONS_H

#include <lua.h>

#include "config/plan_builder.h"

/* The options of the constructor that is running. Lua may longjmp while they are read, so the
 * caller keeps this struct outside of Lua and frees it after script_enter(). */
struct lua_options {
	struct plan_builder *builder;
	struct instance_option *list; /* sorted by name; owned */
	uint32_t n;
};

/* The option of this name. NULL: no such option. */
typedef const struct fusee_option *lua_options_known(const void *arg, const char *name);

/* Reads the table at `index` into the empty options. what and where: the constructor and its place,
 * for errors. A value of a wrong type is recorded, and its option kept with value.kind 0; an
 * unknown option is kept with an empty text. Inside script_enter(); may raise. */
void lua_options_read(lua_State *L, struct lua_options *, const char *what, const char *where,
		      int index, lua_options_known *known, const void *arg);
void lua_options_fini(struct lua_options *); /* makes them empty; keeps the builder */
#endif
