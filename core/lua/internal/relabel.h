/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of relabeling in a script: relabel { {..}, {..} } and the option `relabel` of sinks. */
#ifndef LUA_RELABEL_H
#define LUA_RELABEL_H

#include "lua/internal/api.h"

/* Reads the list of rules at this index of the stack, an absolute index, into api.rules. what and
 * where: the declaration or option and its place, for errors. Errors are recorded. Inside
 * script_enter(); may raise. */
void lua_relabel_read(lua_State *L, struct api *, int index, const char *what, const char *where);
/* The same for the field `relabel` of the table at index 1, if it has one. sink: the constructor,
 * "sink.http". */
void lua_relabel_of_sink(lua_State *L, struct api *, const char *sink, const char *where);
/* Hands the rules over. NULL: there are none. */
struct relabel_rules *lua_relabel_take(struct api *);
#endif
