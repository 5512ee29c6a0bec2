/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan from a Lua script. */
#ifndef LUA_SCRIPT_H
#define LUA_SCRIPT_H

#include "config/plan.h"

/* Runs the script and checks its plan against the folder's plugins; starts nothing. 0 with *ret,
 * which plan_free() frees; -EINVAL with at least one sentence in *errors; the -errno of opening the
 * file, with its sentence; -ENOMEM, with or without sentences. */
int plan_from_script(struct plan **ret, const char *path, const struct plugin_folder *,
		     struct plan_errors *errors);
#endif
