/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as the callbacks of on("profile") see them. Inside script_enter(); the functions may
 * raise. */
#ifndef CONFIG_LUA_PROFILE_H
#define CONFIG_LUA_PROFILE_H

#include <lua.h>

void profile_open(lua_State *); /* once for each state */
/* Pushes the profile of the call that runs. */
void profile_push(lua_State *);
#endif
