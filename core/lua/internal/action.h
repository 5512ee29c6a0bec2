/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of targets in callbacks, which act on a target. They record an action; the agent carries
 * it out when the callback has returned. */
#ifndef LUA_ACTION_H
#define LUA_ACTION_H

#include <lua.h>

#include "lua/callback.h"

struct target_method {
	const char *name, *usage; /* "rate", "t:rate(hz, \"30s\")" */
	/* The arguments are at 2 and above. Raises if they are wrong. Inside script_enter(). */
	void (*call)(lua_State *, struct callback_actions *, struct callback_action *);
};

extern const struct target_method target_methods[]; /* ends with a NULL name */
#endif
