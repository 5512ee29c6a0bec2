// SPDX-License-Identifier: Apache-2.0
/*
 * Lua does not call the hook that measures time in C functions, error handlers and finalizers, so
 * the functions of the standard library that could run for long are wrapped with a limit.
 */
#include "lua/internal/library.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <lualib.h>

#include "base/guess.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lua/internal/state.h"
#include "lua/internal/pattern.h"

#define MAX_STEPS 10000000 /* of a pattern: some tens of milliseconds */
#define MAX_MOVES 1000000
#define MAX_BYTES (16 << 20)

/* Whether the text begins with a place: "fusee.lua:3: .." */
static bool has_place(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon && strspn(colon + 1, "0123456789") &&
	       colon[1 + strspn(colon + 1, "0123456789")] == ':';
}

/* Calls the wrapped function (upvalue 1) with the same arguments. Its errors lack a place, because
 * the script does not call it directly; this adds the place. */
static int forward(lua_State *L)
{
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	if (!lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0))
		return lua_gettop(L);
	if (lua_type(L, -1) == LUA_TSTRING && !has_place(lua_tostring(L, -1)))
		return script_error(L, "%s", lua_tostring(L, -1));
	return lua_error(L);
}

/* ---- strings ---- */

static int check_pattern(lua_State *L, enum pattern_search search, bool init_at_3)
{
	struct pattern_text text, pattern;
	lua_Integer init = init_at_3 ? luaL_optinteger(L, 3, 1) : 1;

	text.p = luaL_checklstring(L, 1, &text.len);
	pattern.p = luaL_checklstring(L, 2, &pattern.len);
	if (init < 0)
		init = (lua_Integer)text.len + init < 0 ? 0 : (lua_Integer)text.len + init;
	else if (init > 0)
		init--;
	if (pattern_cost(text, pattern, (size_t)init, search, MAX_STEPS) > MAX_STEPS)
		return script_error(L,
				    "the pattern '%.40s' takes more than %d steps on a text of %zu "
				    "bytes",
				    pattern.p, MAX_STEPS, text.len);
	return forward(L);
}

static int string_find(lua_State *L)
{
	size_t text, word;

	luaL_checklstring(L, 1, &text);
	luaL_checklstring(L, 2, &word);
	if (!lua_toboolean(L, 4))
		return check_pattern(L, PATTERN_FIRST, true);
	if (word && text / 64 * word > MAX_STEPS)
		return script_error(L, "a search for %zu bytes in %zu takes too long", word, text);
	return forward(L);
}

static int string_match(lua_State *L)
{
	return check_pattern(L, PATTERN_FIRST, true);
}

static int string_gmatch(lua_State *L)
{
	return check_pattern(L, PATTERN_GMATCH, true);
}

static int string_gsub(lua_State *L)
{
	return check_pattern(L, PATTERN_ALL, false);
}

static int string_rep(lua_State *L)
{
	size_t len, separator = 0;
	lua_Integer n = luaL_checkinteger(L, 2);

	luaL_checklstring(L, 1, &len);
	if (!lua_isnoneornil(L, 3))
		luaL_checklstring(L, 3, &separator);
	/* an empty text takes time as well */
	if (n > 0 && ((double)(len + separator) * (double)n > MAX_BYTES || n > MAX_BYTES))
		return script_error(L, "string.rep would make more than 16 MiB");
	return forward(L);
}

/* ---- tables ---- */

/* A __len could return any length. */
static int table_without_len(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	if (luaL_getmetafield(L, 1, "__len") != LUA_TNIL)
		return script_error(L, "a table with __len is not allowed here");
	return forward(L);
}

static int table_move(lua_State *L)
{
	lua_Integer from = luaL_checkinteger(L, 2), to = luaL_checkinteger(L, 3);

	if (to >= from && (uint64_t)to - (uint64_t)from > MAX_MOVES)
		return script_error(L, "table.move of more than a million elements");
	return forward(L);
}

/* ---- base ---- */

/* The hook is not called in a finalizer. */
static int base_setmetatable(lua_State *L)
{
	if (lua_istable(L, 2)) {
		lua_pushliteral(L, "__gc");
		if (lua_rawget(L, 2) != LUA_TNIL)
			return script_error(L, "'__gc' is not allowed in a script");
		lua_pop(L, 1);
	}
	return forward(L);
}

/* The hook is not called in a handler, so the handler runs after the error instead of in it. */
static int base_xpcall(lua_State *L)
{
	int n = lua_gettop(L), status;

	luaL_checktype(L, 2, LUA_TFUNCTION);
	luaL_checkstack(L, n, "too many arguments");
	lua_pushvalue(L, 1);
	for (int i = 3; i <= n; i++)
		lua_pushvalue(L, i);
	status = lua_pcall(L, n - 2, LUA_MULTRET, 0);
	if (!status) {
		lua_pushboolean(L, 1);
		lua_insert(L, n + 1);
		return lua_gettop(L) - n;
	}
	lua_pushvalue(L, 2);
	lua_insert(L, -2);
	lua_call(L, 1, 1);
	lua_pushboolean(L, 0);
	lua_insert(L, -2);
	return 2;
}

static int base_load(lua_State *L)
{
	lua_settop(L, lua_gettop(L) < 4 ? 3 : 4);
	lua_pushliteral(L, "t");
	lua_replace(L, 3);
	return forward(L);
}

/* The arguments with blanks between them, as a line of the log with the place of the call. */
static void log_line(lua_State *L, int level)
{
	int n = lua_gettop(L);
	char where[SCRIPT_WHERE];
	luaL_Buffer b;

	luaL_buffinit(L, &b);
	for (int i = 1; i <= n; i++) {
		luaL_addstring(&b, i > 1 ? " " : "");
		luaL_tolstring(L, i, NULL);
		luaL_addvalue(&b);
	}
	luaL_pushresult(&b);
	script_where(L, where);
	log_at(level, "%s: %s", where, lua_tostring(L, -1));
}

static int base_print(lua_State *L)
{
	log_line(L, LOG_INFO);
	return 0;
}

static int base_warn(lua_State *L)
{
	metric_add("script_warnings_total", "Total number of warnings of the script.", NULL, 1);
	log_line(L, LOG_WARNING);
	return 0;
}

static bool module_name(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_-.");

	return len && len < 64 && !name[len] && *name != '.' && !strstr(name, "..");
}

/* Upvalue 1: the loaded modules by name. */
static int base_require(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1), *file, *path, *shown;
	struct script *s = script_of(L);
	const char *slash = strrchr(s->name, '/');

	if (!module_name(name))
		return script_error(L,
				    "require takes the name of a file in the script's directory "
				    "without '.lua', not '%.60s'",
				    name);
	if (lua_getfield(L, lua_upvalueindex(1), name) != LUA_TNIL) {
		if (lua_islightuserdata(L, -1))
			return script_error(L, "'%s' requires itself", name);
		return 1;
	}
	lua_pushlightuserdata(L, s);
	lua_setfield(L, lua_upvalueindex(1), name);
	file = luaL_gsub(L, name, ".", "/");
	path = strcmp(s->dir, ".") ? lua_pushfstring(L, "%s/%s.lua", s->dir, file)
				   : lua_pushfstring(L, "%s.lua", file);
	shown = slash ? path : lua_pushfstring(L, "%s.lua", file);
	script_load_file(L, path, shown);
	lua_pushstring(L, name);
	lua_call(L, 1, 1);
	if (lua_isnil(L, -1)) {
		lua_pushboolean(L, 1);
		lua_replace(L, -2);
	}
	lua_pushvalue(L, -1);
	lua_setfield(L, lua_upvalueindex(1), name);
	return 1;
}

static int base_read_file(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);

	if (*path != '/' && strcmp(script_of(L)->dir, "."))
		path = lua_pushfstring(L, "%s/%s", script_of(L)->dir, path);
	script_push_file(L, path);
	return 1;
}

/* ---- globals ---- */

static int no_global(lua_State *L)
{
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
	struct guess g = {.word = name};

	lua_pushvalue(L, 2);
	if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
		return 1;
	lua_pop(L, 1);
	lua_pushnil(L);
	while (lua_next(L, lua_upvalueindex(1))) {
		lua_pop(L, 1);
		/* the table refers to the keys, so the text stays valid */
		if (lua_type(L, -1) == LUA_TSTRING)
			guess_offer(&g, lua_tostring(L, -1));
	}
	return script_error(L, "no global '%.60s'" GUESS_HINT, name, GUESS_WORDS(g, ""));
}

static int set_global(lua_State *L)
{
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";

	return script_error(L, "global '%.60s' is not allowed: write 'local %.60s = ...'", name,
			    name);
}

/* Wraps the function of this name in fn, or removes it if fn is NULL. The table is on top. */
static void wrap(lua_State *L, const char *name, lua_CFunction fn)
{
	lua_getfield(L, -1, name);
	if (fn) {
		lua_pushcclosure(L, fn, 1);
	} else {
		lua_pop(L, 1);
		lua_pushnil(L);
	}
	lua_setfield(L, -2, name);
}

static void wrap_all(lua_State *L, const char *table, const luaL_Reg *c)
{
	lua_getfield(L, -1, table);
	for (; c->name; c++)
		wrap(L, c->name, c->func);
	lua_pop(L, 1);
}

static void open_os(lua_State *L)
{
	static const char *const kept[] = {"getenv", "time", "date", "clock"};

	luaL_requiref(L, "os", luaopen_os, 0);
	lua_newtable(L);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		lua_getfield(L, -2, kept[i]);
		lua_setfield(L, -2, kept[i]);
	}
	lua_remove(L, -2);
	lua_setfield(L, -2, "os");
}

/* Adds Lua's standard library to the table on top, as luaL_openlibs() does to _G. */
static void open_standard(lua_State *L)
{
	static const luaL_Reg libraries[] = {
		{LUA_TABLIBNAME, luaopen_table},    {LUA_STRLIBNAME, luaopen_string},
		{LUA_MATHLIBNAME, luaopen_math},    {LUA_UTF8LIBNAME, luaopen_utf8},
		{LUA_COLIBNAME, luaopen_coroutine}, {NULL, NULL}};

	/* the base library fills the table of globals, which so this table must be the table of
	 * globals */
	lua_pushvalue(L, -1);
	lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
	luaL_requiref(L, LUA_GNAME, luaopen_base, 0);
	lua_pop(L, 1);
	for (const luaL_Reg *l = libraries; l->name; l++) {
		luaL_requiref(L, l->name, l->func, 0);
		lua_setfield(L, -2, l->name);
	}
	open_os(L);
}

/* Puts an empty table in front of the globals, whose metamethods say what is wrong with an unknown
 * or assigned global. */
static void protect_globals(lua_State *L)
{
	lua_newtable(L);
	lua_pushvalue(L, -1);
	lua_setfield(L, -3, LUA_GNAME);
	lua_newtable(L);
	lua_pushvalue(L, -3);
	lua_pushcclosure(L, no_global, 1);
	lua_setfield(L, -2, "__index");
	lua_pushcfunction(L, set_global);
	lua_setfield(L, -2, "__newindex");
	lua_pushliteral(L, "globals");
	lua_setfield(L, -2, "__metatable");
	lua_setmetatable(L, -2);
	lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

void library_open(lua_State *L)
{
	static const luaL_Reg base[] = {{"setmetatable", base_setmetatable},
					{"load", base_load},
					{"collectgarbage", NULL},
					{"dofile", NULL},
					{"loadfile", NULL},
					{NULL, NULL}};
	static const luaL_Reg strings[] = {
		{"find", string_find}, {"match", string_match}, {"gmatch", string_gmatch},
		{"gsub", string_gsub}, {"rep", string_rep},     {"dump", NULL},
		{NULL, NULL}};
	static const luaL_Reg tables[] = {{"concat", table_without_len},
					  {"insert", table_without_len},
					  {"remove", table_without_len},
					  {"sort", table_without_len},
					  {"unpack", table_without_len},
					  {"move", table_move},
					  {NULL, NULL}};

	lua_newtable(L);
	open_standard(L);
	for (const luaL_Reg *c = base; c->name; c++)
		wrap(L, c->name, c->func);
	wrap_all(L, LUA_STRLIBNAME, strings);
	wrap_all(L, LUA_TABLIBNAME, tables);
	lua_pushcfunction(L, base_xpcall);
	lua_setfield(L, -2, "xpcall");
	lua_pushcfunction(L, base_print);
	lua_setfield(L, -2, "print");
	lua_pushcfunction(L, base_warn);
	lua_setfield(L, -2, "warn");
	lua_pushcfunction(L, base_read_file);
	lua_setfield(L, -2, "read_file");
	lua_newtable(L);
	lua_pushcclosure(L, base_require, 1);
	lua_setfield(L, -2, "require");
	lua_pushvalue(L, -1);
	lua_setfield(L, LUA_REGISTRYINDEX, LIBRARY_GLOBALS);
	protect_globals(L);
	lua_pop(L, 1);
}
