/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/internal/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "net/notify.h"

/* The errors of a plan as one text with a line each. NULL: none, or no memory. */
static char *join(const struct plan_errors *e)
{
	struct buf b = {0};

	if (!e->n)
		return NULL;
	for (uint32_t i = 0; i < e->n; i++)
		buf_printf(&b, "%s%s", i ? "\n" : "", e->texts[i]);
	buf_add(&b, "", 1);
	if (b.error) {
		buf_fini(&b);
		return NULL;
	}
	return b.p;
}

static int set_new_plan(struct reload *l, char **error)
{
	const struct agent_options *o = l->options;
	struct plan_errors errors = {0};
	struct plan *plan;
	int r = o->plan(o->arg, l->instances->folder, &plan, &errors);

	*error = NULL;
	if (r)
		*error = join(&errors);
	else
		r = instances_set_plan(l->instances, plan, error);
	plan_errors_fini(&errors);
	return r;
}

int reload_run(struct reload *l)
{
	char *error;
	int r;

	notify_reloading();
	r = set_new_plan(l, &error);
	metric_set("config_last_reload_successful",
		   "Whether the last reload of the configuration succeeded.", NULL, !r);
	free(l->error);
	l->failed = r;
	l->error = r && !error ? strdup(strerror(-r)) : error;
	if (r)
		log_error("reload failed, the running plan stays:\n%s", reload_error(l));
	else
		log_info("reloaded");
	notify_send("READY=1");
	return r;
}

const char *reload_error(const struct reload *l)
{
	if (!l->failed)
		return NULL;
	return l->error ? l->error : strerror(ENOMEM);
}

void reload_fini(struct reload *l)
{
	free(l->error);
}
