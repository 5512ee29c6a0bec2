/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as the callbacks of on("profile") see them. Inside script_enter(); the functions may
 * raise. */
#ifndef LUA_PROFILE_H
#define LUA_PROFILE_H

#include <lua.h>

void profile_open(lua_State *); /* once for each state */
/* Pushes the profile of the call that runs. */
void profile_push(lua_State *);
#endif
