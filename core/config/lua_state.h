/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script's Lua with its limits: memory in the allocator, CPU time by a hook that pcall cannot
 * swallow, and a library without what reaches outside. The script is the administrator's own: the
 * limits are against accidents, not against attackers.
 *
 * Any call into Lua may longjmp to the script_enter() below it: what runs there keeps nothing in C
 * that has to be released.
 */
#ifndef CONFIG_LUA_STATE_H
#define CONFIG_LUA_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#define SCRIPT_MEMORY (16u << 20)
#define SCRIPT_MAX_FILE (1u << 20)
#define SCRIPT_RUN_NS UINT64_C(1000000000) /* of CPU time */
#define SCRIPT_POLICY_NS UINT64_C(20000000)
#define SCRIPT_WHERE 128

struct script {
	lua_State *L;
	size_t used, limit;
	uint64_t allowed_ns, deadline_ns; /* CPU time of this thread */
	bool expired, refused_memory;
	char near[SCRIPT_WHERE]; /* "fusee.lua:2": where the hook last was */
	char *path, *dir;        /* dir: of the script */
	char name[64];           /* in messages: the path, or its end */
	void *owner;             /* of the bindings */
};

/* 0 or -ENOMEM. */
int script_init(struct script *, const char *path);
void script_fini(struct script *);

/* Runs fn(L) with ud as its argument 1 (a light userdata), at most ns of CPU time. 0, or -EINVAL
 * with a malloc'ed sentence that has its place in front; -ENOMEM: no memory for that either. What
 * fn returns stays on the stack: *n values. */
int script_enter(struct script *, lua_CFunction fn, void *ud, uint64_t ns, int *n, char **text);
struct script *script_of(lua_State *);
/* "fusee.lua:12" of the nearest Lua function that runs; the script's name where there is none. */
void script_where(lua_State *, char where[SCRIPT_WHERE]);
/* luaL_error() at that place. */
int script_error(lua_State *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Compiles a file of the script's directory as text and leaves the function, or raises. */
void script_load_file(lua_State *, const char *path, const char *name);

/* The library: fills the table of globals on top of the stack. */
void library_open(lua_State *);
#endif
