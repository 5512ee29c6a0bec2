/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in the making: what is wrong is recorded, and the making goes on. */
#ifndef CONFIG_PLAN_BUILDER_H
#define CONFIG_PLAN_BUILDER_H

#include <stdbool.h>

#include "config/plan.h"

#define MAKER_MAX_ERRORS 20
#define MAKER_MAX_DISCOVERIES 64

struct plan_builder {
	struct plan *plan;
	const struct plugin_folder *folder;
	struct plan_errors *errors;
	uint32_t more;  /* errors beyond MAKER_MAX_ERRORS */
	bool no_memory; /* something could not be recorded */
};

/* An option with value.kind 0 was found wrong, and recorded, before it came here. */

/* With an empty plan of defaults. 0 or -ENOMEM. */
int plan_builder_init(struct plan_builder *, const struct plugin_folder *, struct plan_errors *);
/* "WHERE: SENTENCE"; where "": the sentence alone. */
void plan_builder_error(struct plan_builder *, const char *where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* What is no plugin of this kind: its sentence, with a guess or with why it was refused. */
const struct plugin *plan_builder_plugin(struct plan_builder *, uint32_t kind, const char *name,
					 const char *where);
/* Takes the options over, whatever happens. NULL: it was wrong, and is not in the plan. */
struct plan_instance *plan_builder_add(struct plan_builder *, const struct fusee_plugin *,
				       const char *where, struct instance_option *options,
				       uint32_t n);
/* One of the core's own settings. 0, or -errno with *text: what is wrong with the value. */
int plan_builder_set(struct plan_builder *, const struct fusee_option *,
		     const struct option_value *, char **text);
/* What the plan as a whole lacks; default discoveries. 0 with *ret, or -errno and the plan freed.
 */
int plan_builder_finish(struct plan_builder *, struct plan **ret);

void plan_builder_options_free(struct instance_option *, uint32_t n);
#endif
