/* SPDX-License-Identifier: Apache-2.0 */
/* The instances of unwinders that a process uses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "plugin/plugin.h"

static int order_of(const struct fusee_instance *in)
{
	return ((const struct fusee_unwinder_ops *)in->descriptor->ops)->order;
}

static int by_order(const void *a, const void *b)
{
	const struct fusee_instance *x = *(struct fusee_instance *const *)a;
	const struct fusee_instance *y = *(struct fusee_instance *const *)b;

	if (order_of(x) != order_of(y))
		return order_of(x) < order_of(y) ? -1 : 1;
	return strcmp(x->descriptor->name, y->descriptor->name);
}

static bool is_enabled_unwinder(const struct plugin *p, const struct unwinder_choice *choice)
{
	const char *const *without = choice ? choice->without : NULL;

	for (; without && *without; without++)
		if (!strcmp(*without, p->descriptor->name))
			return false;
	return p->descriptor->kind == FUSEE_UNWINDER;
}

/* The description of an instance, with the options that are chosen for it. */
static struct instance_options options_of(const char *name, const struct fusee_plugin *d,
					  const struct unwinder_choice *choice)
{
	struct instance_options o = {.name = name, .where = ""};

	for (uint32_t i = 0; choice && i < choice->n; i++) {
		const struct unwinder_options *u = &choice->options[i];

		if (strcmp(u->name, d->name) != 0)
			continue;
		o.where = u->where;
		o.options = u->options;
		o.n = u->n;
	}
	return o;
}

static int add_unwinder(struct plugin_set *set, const struct plugin *p,
			const struct fusee_host *host, const struct unwinder_choice *choice)
{
	struct fusee_instance **all;
	struct instance_options o;
	char name[128], *text;
	int r;

	snprintf(name, sizeof(name), "unwind.%s", p->descriptor->name);
	o = options_of(name, p->descriptor, choice);
	all = realloc(set->instances, (set->n + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	set->instances = all;
	r = instance_new(&all[set->n], p->descriptor, host, &o, &text);
	if (!r)
		set->n++;
	else if (r != -ENOMEM)
		log_warning("%s", text ? text : strerror(-r));
	free(text);
	return r == -ENOMEM ? r : 0;
}

int plugin_set_open(const char *dir, const struct fusee_host *host,
		    const struct unwinder_choice *choice, struct plugin_set *set)
{
	struct plugin_folder f;
	int r = plugin_folder_open(dir, FUSEE_UNWINDER, &f);

	*set = (struct plugin_set){0};
	if (!r)
		r = plugin_folder_load(&f);
	for (uint32_t i = 0; i < f.nrefused; i++)
		log_warning("%s", f.refused[i]);
	for (uint32_t i = 0; !r && i < f.n; i++)
		if (is_enabled_unwinder(f.plugins[i], choice))
			r = add_unwinder(set, f.plugins[i], host, choice);
	plugin_folder_close(&f);
	if (r)
		plugin_set_close(set);
	else if (set->n)
		qsort(set->instances, set->n, sizeof(*set->instances), by_order);
	return r;
}

void plugin_set_close(struct plugin_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		instance_free(set->instances[i]);
	free(set->instances);
	*set = (struct plugin_set){0};
}
