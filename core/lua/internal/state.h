/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Lua state of one script with its limits: memory in the allocator, CPU time by a hook whose
 * error pcall cannot swallow. The script's author is trusted: the limits are against accidents.
 *
 * Any call into Lua may longjmp to the script_enter() that is running. Code that runs inside
 * script_enter() therefore never keeps a C resource in a local variable across a call into Lua.
 *
 * A script is used by one thread at a time.
 */
#ifndef LUA_STATE_H
#define LUA_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#include "base/dict.h"

#define SCRIPT_MEMORY (16u << 20)          /* bytes */
#define SCRIPT_MAX_FILE (1u << 20)         /* bytes */
#define SCRIPT_RUN_NS UINT64_C(1000000000) /* of CPU time: the script itself */
#define SCRIPT_CALL_NS UINT64_C(20000000)  /* of CPU time: one call of its policy or a callback */
#define SCRIPT_WHERE 128

struct script {
	lua_State *L;
	size_t used, limit;               /* bytes that Lua has allocated, and may allocate */
	uint64_t allowed_ns, deadline_ns; /* CPU time of the thread that entered */
	bool expired, refused_memory;
	size_t kept;                /* `used` after the last collection of script_collect() */
	uint32_t cycles;            /* that script_collect() must still complete */
	char near[SCRIPT_WHERE];    /* "fusee.lua:2": where the hook was called last */
	char *path, *dir;           /* of the script's file; the folder that contains it */
	char name[64];              /* in messages: the path, or its last component if it is long */
	void *owner;                /* for the bindings; NULL while the policy or a callback runs */
	const char *inside;         /* what runs: "the policy", "every" */
	struct callback_call *call; /* of the callback that runs; NULL: none runs */
	struct policy_watch *watch; /* of the policy that runs; NULL: none is watched */
	uint64_t calls;             /* of callbacks so far */
	char policy_where[SCRIPT_WHERE]; /* "fusee.lua:9": where the policy was declared */
	struct dict texts;               /* label texts that the policy returned */
};

/* 0 or -ENOMEM. The state is empty: library.h fills it. */
int script_init(struct script *, const char *path);
void script_fini(struct script *);

/* Runs fn(L), with ud as its argument 1 (a light userdata), for at most ns of CPU time. Returns 0
 * with fn's *n results on the stack; -EINVAL with a malloc'ed sentence in *text that begins with
 * its place; -ENOMEM with *text NULL or such a sentence. */
int script_enter(struct script *, lua_CFunction fn, void *ud, uint64_t ns, int *n, char **text);
/* Collects garbage for at most a millisecond, if there may be much of it. To be called once a
 * second. Lua itself collects only while it allocates, so the last call's garbage would stay for
 * ever, in small blocks that keep the allocator from returning pages. */
void script_collect(struct script *);
/* A malloc'ed "fusee.lua:9: WHAT: TEXT"; the place is that of the text if it begins with one, else
 * `where`. NULL: no memory. */
char *script_sentence(const char *where, const char *what, const char *text);

/* The functions below are called inside script_enter() and may raise. */

struct script *script_of(lua_State *);
/* "fusee.lua:12" of the innermost Lua function that runs; the script's name if there is none. */
void script_where(lua_State *, char where[SCRIPT_WHERE]);
/* luaL_error() with script_where() in front. Does not return; int for `return script_error()`. */
int script_error(lua_State *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Pushes the bytes of a file, or raises "cannot read 'x': ..". */
void script_push_file(lua_State *, const char *path);
/* Compiles a file as text and pushes the function, or raises. name: the file in messages. */
void script_load_file(lua_State *, const char *path, const char *name);
#endif
