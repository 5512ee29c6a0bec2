/* SPDX-License-Identifier: Apache-2.0 */
/* Samplers, by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin.h"

int plugin_sampler_find(const char *dir, const char *name, const struct fusee_plugin **ret,
			char **text)
{
	const struct plugin *p = NULL;
	struct plugin_folder f;
	const char *why;
	int r = plugin_folder_open(dir, FUSEE_SAMPLER, &f);

	*text = NULL;
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	p = plugin_folder_find(&f, FUSEE_SAMPLER, name);
	why = p ? NULL : plugin_folder_refusal(&f, FUSEE_SAMPLER, name);
	if (why)
		*text = strdup(why);
	r = p ? 0 : why ? -EPROTO : -ENOENT;
	if (p)
		*ret = p->descriptor;
	plugin_folder_close(&f);
	return r;
}

void plugin_samplers_offer(const char *dir, struct guess *guess, struct buf *names)
{
	struct plugin_folder f;

	if (plugin_folder_open(dir, FUSEE_SAMPLER, &f))
		return;
	for (uint32_t i = 0; i < f.n; i++) {
		guess_offer(guess, plugin_name(f.plugins[i]));
		buf_printf(names, "%s ", plugin_name(f.plugins[i]));
	}
	plugin_folder_close(&f);
}

int plugin_sampler_open(const struct chooser_options *choice, struct fusee_instance **ret,
			char **text)
{
	char name[128];
	struct instance_options o = {
		.name = name, .where = choice->where, .options = choice->options, .n = choice->n};

	snprintf(name, sizeof(name), "sample.%s", choice->descriptor->name);
	return instance_new(ret, choice->descriptor, &plugin_host_base, &o, text);
}

const struct fusee_sampler_ops *plugin_sampler_ops(const struct fusee_plugin *d)
{
	return d->ops;
}

const struct fusee_sampler_ops *plugin_chooser_ops(const struct chooser_set *set, uint32_t number)
{
	return number < set->n ? set->at[number]->descriptor->ops : NULL;
}

void plugin_choosers_close(struct chooser_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		instance_free(set->at[i]);
	*set = (struct chooser_set){0};
}
