// SPDX-License-Identifier: Apache-2.0
#include "config/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/settings.h"
#include "plugin/options.h"

char *plan_default_control(void)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	char *path = NULL;
	int r;

	if (!geteuid())
		r = asprintf(&path, "/run/fusee/control");
	else if (run && *run == '/')
		r = asprintf(&path, "%s/fusee/control", run);
	else
		r = asprintf(&path, "/tmp/fusee-%u/control", (unsigned int)geteuid());
	return r < 0 ? NULL : path;
}

void plan_errors_fini(struct plan_errors *e)
{
	for (uint32_t i = 0; i < e->n; i++)
		free(e->texts[i]);
	free(e->texts);
	*e = (struct plan_errors){0};
}

static void free_texts(char **all)
{
	for (char **t = all; t && *t; t++)
		free(*t);
	free(all);
}

static void free_instances(struct plan_instance **all, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct plan_instance *p = all[i];

		instance_option_list_free(p->options, p->noptions);
		free_texts(p->omit);
		free(p->spool);
		relabel_rules_free(p->relabel);
		free(p->plugin);
		free(p->name);
		free(p->where);
		if (p->identity)
			explicit_bzero(p->identity, strlen(p->identity));
		free(p->identity);
		free(p);
	}
	free(all);
}

struct unwinder_choice plan_unwinders(const struct plan *p, struct unwinder_options *list)
{
	for (uint32_t i = 0; i < p->nunwinders; i++) {
		const struct plan_instance *u = p->unwinders[i];

		list[i] = (struct unwinder_options){u->plugin, u->where, u->options, u->noptions};
	}
	return (struct unwinder_choice){
		.without = (const char *const *)p->without, .options = list, .n = p->nunwinders};
}

uint64_t plan_hit_bytes(const struct plan *p)
{
	return p->samplers.inuse_bytes ? p->samplers.inuse_bytes : p->samplers.alloc_bytes;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	free_instances(p->sinks, p->nsinks);
	free_instances(p->discoveries, p->ndiscoveries);
	free_instances(p->unwinders, p->nunwinders);
	free_instances(p->samplers.list, p->samplers.n);
	for (uint32_t i = 0; i < p->samplers.nprobes; i++) {
		free(p->samplers.probes[i].text);
		free(p->samplers.probes[i].name);
		free(p->samplers.probes[i].where);
	}
	free(p->samplers.probes);
	options_clear(p, &plan_settings[SETTINGS_SAMPLE_PROBE].options); /* name */
	free_texts(p->without);
	relabel_rules_free(p->relabel);
	for (uint32_t i = 0; i < p->callbacks.n; i++)
		free(p->callbacks.list[i].where);
	if (p->script)
		p->callbacks.free_script(p->script);
	free(p->path);
	options_clear(p, &plan_settings[SETTINGS_METRICS].options); /* listen, hosts, pull_omit */
	options_clear(p, &plan_settings[SETTINGS_LABELS].options);  /* service_name */
	options_clear(p, &plan_settings[SETTINGS_SYMBOLS].options); /* debuginfod */
	free(p->control);
	free(p);
}
