/* SPDX-License-Identifier: Apache-2.0 */
/* The call of a callback that runs: for the files that bind what a callback sees. */
#ifndef LUA_CALL_H
#define LUA_CALL_H

#include <stdint.h>

#include "lua/callback.h"

struct callback_call {
	const struct callback_view *view;       /* of every(); NULL: it has none */
	const struct callback_profile *profile; /* of on("profile"), likewise */
	struct callback_actions *actions;
	uint32_t callback;
	uint32_t tops;   /* calls of p:top() */
	uint64_t number; /* of the call: its objects are valid in it only */
};
#endif
