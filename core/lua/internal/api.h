/* SPDX-License-Identifier: Apache-2.0 */
/* The constructors and declarations of a script: sink.X, discover.X, unwind.X, sample.cpu, metrics,
 * control, unknown, policy, help. They fill a plan builder. */
#ifndef LUA_API_H
#define LUA_API_H

#include "lua/internal/options.h"
#include "lua/internal/state.h"
#include "config/plan_builder.h"
#include "config/settings.h"

#define API_MAX_DECLARED 64
#define API_POLICY "fusee.policy" /* the policy's function, in the registry */

/* A declaration that may occur only once, and its place. */
struct api_declared {
	char name[80], where[SCRIPT_WHERE];
};

/* The owner of the struct script while the script runs; made outside of Lua. */
struct api {
	struct plan_builder builder;
	struct lua_options options;
	struct relabel_rules *rules; /* the rules that are being read; NULL: none */
	struct api_declared declared[API_MAX_DECLARED];
	uint32_t ndeclared;
};

/* What sink.X returns to the script. */
struct api_handle {
	uint32_t
		sink; /* index in the plan; UINT32_MAX: the sink was wrong and is not in the plan */
	char name[80];
};

/* The owner. Raises if the script has ended and its policy or a callback is running. what: the
 * function that was called. */
struct api *api_of(lua_State *L, const char *what);
/* Adds the constructors to the globals of the library. Inside script_enter(); may raise. */
void api_open(lua_State *L);
/* NULL: it was not declared. */
const struct api_declared *api_declared(const struct api *, const char *name);
/* NULL: it is declared already, or there are too many declarations; recorded. */
struct api_declared *api_declare_once(struct api *, const char *name, const char *where);
/* Whether the constructor was called with one table; records if not. */
bool api_is_one_table(lua_State *, struct api *, const char *name, const char *where);
/* Reads the table at index 1 into the options, and sets the group's settings from them. */
void api_set_group(lua_State *, struct api *, const struct plan_settings *, const char *where);
/* Is an option of this name in the table that was read? */
bool api_is_given(const struct api *, const char *name);
/* The handle at this index of the stack. NULL: the value is no handle. */
const struct api_handle *api_handle(lua_State *L, int index);
#endif
