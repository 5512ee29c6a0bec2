/* SPDX-License-Identifier: Apache-2.0 */
/* Targets as the policy and callbacks see them: they can be read and not changed. Inside
 * script_enter(); the functions may raise. */
#ifndef LUA_TARGET_H
#define LUA_TARGET_H

#include <lua.h>
#include <stdint.h>

#include <fusee/profile.h>

/* Pushes a table through which labels that have a text are read. */
void target_push_labels(lua_State *, const struct fusee_label *, uint32_t n);
/* Pushes what the policy is called with: a table with `labels`. */
void target_push(lua_State *, const struct fusee_label *, uint32_t n);
#endif
