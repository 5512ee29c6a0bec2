/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that every script has: Lua's own except those that access the system, and print,
 * require, read_file. A global that does not exist is an error. */
#ifndef LUA_LIBRARY_H
#define LUA_LIBRARY_H

#include <lua.h>

#define LIBRARY_GLOBALS "fusee.globals" /* the table of globals, in the registry */

/* Fills the registry and the globals of an empty state. Inside script_enter(); may raise. */
void library_open(lua_State *);
#endif
