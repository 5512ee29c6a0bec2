/* SPDX-License-Identifier: Apache-2.0 */
/* sample.probe { "uprobe:PATH:FUNCTION", .. } of a script. */
#ifndef LUA_PROBE_H
#define LUA_PROBE_H

#include "lua/internal/api.h"

int lua_probe_declare(lua_State *);
#endif
