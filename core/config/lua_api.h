/* SPDX-License-Identifier: Apache-2.0 */
/* What a script calls to say what is to be done: it fills a plan. */
#ifndef CONFIG_LUA_API_H
#define CONFIG_LUA_API_H

#include "config/lua_state.h"
#include "config/plan_builder.h"

enum { API_MAX_NAMED = 64 };

/* Something that may be said only once, and where it was. */
struct api_said {
	char name[80], where[SCRIPT_WHERE];
	bool disabled; /* unwinders */
};

/* script->owner while the script runs. */
struct api {
	struct plan_builder m;
	/* The declaration under way: in C's memory, but freed by who made the api if Lua leaves
	 * it by an error. */
	struct instance_option *options;
	uint32_t noptions;
	struct api_said said[API_MAX_NAMED];
	uint32_t nsaid;
	bool has_policy;
	char policy_where[SCRIPT_WHERE];
};

#define API_POLICY "fusee.policy" /* the function, in the registry */
#define API_HANDLE "fusee.handle" /* metatable of what sink.X returns */

struct api_handle {
	uint32_t sink; /* index in the plan; UINT32_MAX: it was wrong */
	char name[80];
};

/* Puts the bindings into the globals of the library. */
void api_open(lua_State *L);
/* The handle at this place of the stack, NULL: it is none. */
const struct api_handle *api_handle(lua_State *L, int index);
/* Reads options of the table at `index` into api->options, sorted by name; known(arg, name): the
 * option, NULL: none. What has a wrong type is recorded and kept with kind 0. */
void api_read_options(lua_State *L, struct api *, const char *what, const char *where, int index,
		      const struct fusee_option *(*known)(const void *arg, const char *name),
		      const void *arg);
#endif
