/* SPDX-License-Identifier: Apache-2.0 */
/* A plan's script once it has run: its policy. */
#ifndef CONFIG_POLICY_STATE_H
#define CONFIG_POLICY_STATE_H

#include "base/dict.h"
#include "config/lua_state.h"

#define POLICY_MAX_TEXTS 65536u
#define POLICY_MAX_BYTES (4u << 20)

struct policy {
	struct script script;
	char where[SCRIPT_WHERE]; /* of the policy's line */
	struct dict texts;        /* labels that it gave: they live as long as the plan */
};

void policy_free(struct policy *); /* NULL is fine */
#endif
