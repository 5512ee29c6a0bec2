/* SPDX-License-Identifier: Apache-2.0 */
/* --unwind of `record` and `top`: options of unwinders. */
#ifndef CONFIG_UNWIND_FLAGS_H
#define CONFIG_UNWIND_FLAGS_H

#include "config/plan.h"

#define UNWIND_HELP                                                     \
	"an option of an unwinder, as in python:enabled=false; fusee\n" \
	"plugins NAME lists them; several are allowed"

struct unwind_flags {
	const char *all[PLAN_MAX_UNWINDERS];
	uint32_t n;
};

/* Adds "NAME:OPTION=VALUE,..", which stays the caller's. 0, or EX_USAGE after one error was
 * logged. */
int unwind_flags_add(struct unwind_flags *, const char *value);
/* Checks them against the plugins of dir. 0 with a plan that plan_free() frees, NULL if there are
 * no flags; or an exit code after errors were logged. */
int unwind_flags_plan(const struct unwind_flags *, const char *dir, struct plan **ret);
#endif
