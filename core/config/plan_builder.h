/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a plan. Every mistake is recorded with its place and the building goes on, so that the
 * user sees all of them at once. */
#ifndef CONFIG_PLAN_BUILDER_H
#define CONFIG_PLAN_BUILDER_H

#include <stdbool.h>

#include "config/plan.h"

struct plan_builder {
	struct plan *plan; /* owned until plan_builder_finish() */
	const struct plugin_folder *folder;
	struct plan_errors *errors;
	uint32_t more;  /* errors beyond PLAN_MAX_ERRORS */
	bool no_memory; /* something could not be recorded: finishing fails with -ENOMEM */
};

/* Starts with a plan of defaults; *errors becomes empty. 0 or -ENOMEM. */
int plan_builder_init(struct plan_builder *, const struct plugin_folder *,
		      struct plan_errors *errors);
/* Records "WHERE: SENTENCE"; with where "" the sentence alone. */
void plan_builder_error(struct plan_builder *, const char *where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Finds a plugin. NULL: no such plugin, which is recorded with a guess or with the reason why it
 * was refused. */
const struct plugin *plan_builder_plugin(struct plan_builder *, uint32_t kind, const char *name,
					 const char *where);
/* Adds an instance; takes the options over in any case. An option with value.kind 0 has a wrong
 * type, which the caller has recorded. NULL: something was wrong, the plan lacks the instance. */
struct plan_instance *plan_builder_add(struct plan_builder *, const struct fusee_plugin *,
				       const char *where, struct instance_option *options,
				       uint32_t n);
/* Sets one of the core's own settings (settings.h). 0, or -errno with a malloc'ed sentence about
 * the value in *text (NULL: no memory). */
int plan_builder_set(struct plan_builder *, const struct fusee_option *,
		     const struct option_value *, char **text);
/* Adds the default discoveries and ends the building. 0 with *ret; -EINVAL or -ENOMEM, and the plan
 * is freed. */
int plan_builder_finish(struct plan_builder *, struct plan **ret);
#endif
