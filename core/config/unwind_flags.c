// SPDX-License-Identifier: Apache-2.0
#include "config/unwind_flags.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"
#include "config/flags.h"

int unwind_flags_add(struct unwind_flags *f, const char *value)
{
	if (f->n == PLAN_MAX_UNWINDERS) {
		log_error("--unwind '%s': it can be given %d times at most", value,
			  PLAN_MAX_UNWINDERS);
		return EX_USAGE;
	}
	f->all[f->n++] = value;
	return 0;
}

int unwind_flags_plan(const struct unwind_flags *f, const char *dir, struct plan **ret)
{
	const struct plan_flags flags = {.unwinders = f->all, .nunwinders = f->n, .no_sinks = true};
	struct plugin_folder folder;
	struct plan_errors errors;
	int r;

	*ret = NULL;
	if (!f->n)
		return 0;
	r = plugin_folder_open(dir, FUSEE_UNWINDER, &folder);
	if (r) {
		log_error("cannot read the plugins of %s: %s", dir, strerror(-r));
		plugin_folder_close(&folder);
		return r == -ENOMEM ? EX_OSERR : EX_SOFTWARE;
	}
	r = plan_from_flags(ret, &flags, &folder, &errors);
	for (uint32_t i = 0; i < errors.n; i++)
		log_error("%s", errors.texts[i]);
	if (r && !errors.n)
		log_error("cannot read --unwind: %s", strerror(-r));
	plan_errors_fini(&errors);
	plugin_folder_close(&folder);
	return !r ? 0 : r == -ENOMEM ? EX_OSERR : EX_USAGE;
}
