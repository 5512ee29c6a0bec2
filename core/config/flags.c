// SPDX-License-Identifier: Apache-2.0
#include "config/flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/plan_builder.h"
#include "config/settings.h"

/* The options of one flag that are read so far. */
struct reading {
	const struct fusee_plugin *d;
	struct instance_option *options;
	uint32_t n;
};

/* Removes the text up to the next unescaped comma from *rest, and unescapes it in place. NULL: the
 * end. */
static char *next_item(char **rest)
{
	char *item = *rest, *from = item, *to = item;

	if (!item)
		return NULL;
	for (; *from && *from != ','; *to++ = *from++)
		if (from[0] == '\\' && (from[1] == ',' || from[1] == '\\'))
			from++;
	*rest = *from ? from + 1 : NULL;
	*to = '\0';
	return item;
}

static int add_pair(struct option_value *v, const char *key, const char *value)
{
	struct option_pair *all = realloc(v->pairs, (v->n + 1) * sizeof(*all));

	if (!all)
		return -ENOMEM;
	v->pairs = all;
	all[v->n] = (struct option_pair){key ? strdup(key) : NULL, strdup(value)};
	if ((key && !all[v->n].key) || !all[v->n].value) {
		free(all[v->n].key);
		free(all[v->n].value);
		return -ENOMEM;
	}
	v->n++;
	return 0;
}

/* Adds to a list or a map. -EINVAL: the value is for a map and has no '='. */
static int add_item(struct option_value *v, char *text)
{
	char *equals;

	if (v->kind == OPTION_LIST)
		return add_pair(v, NULL, text);
	equals = strchr(text, '=');
	if (!equals || equals == text)
		return -EINVAL;
	*equals = '\0';
	return add_pair(v, text, equals + 1);
}

static int begin_option(struct reading *r, const char *name, char *value)
{
	const struct fusee_option *known = plan_option(r->d, name);
	struct instance_option *all = realloc(r->options, (r->n + 1) * sizeof(*all)), *o;
	uint32_t type = known ? known->type : FUSEE_STRING;

	if (!all)
		return -ENOMEM;
	r->options = all;
	o = &all[r->n];
	*o = (struct instance_option){.name = strdup(name)};
	if (!o->name)
		return -ENOMEM;
	r->n++;
	o->value.kind = type == FUSEE_LIST  ? OPTION_LIST
			: type == FUSEE_MAP ? OPTION_MAP
					    : OPTION_TEXT;
	if (o->value.kind != OPTION_TEXT)
		return *value ? add_item(&o->value, value) : 0;
	o->value.text = strdup(value);
	return o->value.text ? 0 : -ENOMEM;
}

/* Reads one item between commas. -EINVAL with the reason in *why; -ENOMEM. */
static int read_item(struct reading *r, char *item, const char **why)
{
	struct instance_option *last = r->n ? &r->options[r->n - 1] : NULL;
	char *equals = strchr(item, '=');
	bool known = false;

	if (equals) {
		*equals = '\0';
		known = plan_option(r->d, item);
		if (!known)
			*equals = '=';
	}
	if (!known && last && last->value.kind != OPTION_TEXT) {
		*why = "must be name=value";
		return add_item(&last->value, item);
	}
	if (!equals) {
		*why = "must be option=value";
		return -EINVAL;
	}
	*equals = '\0';
	for (uint32_t i = 0; i < r->n; i++)
		if (!strcmp(r->options[i].name, item)) {
			*why = "is given twice";
			return -EINVAL;
		}
	*why = "must be name=value";
	return begin_option(r, item, equals + 1);
}

static void add_flag(struct plan_builder *b, uint32_t kind, const char *where, const char *flag)
{
	char *copy = strdup(flag), *rest = copy ? strchr(copy, ':') : NULL, *item;
	const struct plugin *p;
	struct reading r = {0};
	const char *why;

	if (!copy) {
		b->no_memory = true;
		return;
	}
	if (rest)
		*rest++ = '\0';
	p = plan_builder_plugin(b, kind, copy, where);
	if (!p)
		goto out;
	r.d = p->descriptor;
	while ((item = next_item(&rest))) {
		int err = *item ? read_item(&r, item, &why) : 0;

		if (err == -ENOMEM)
			b->no_memory = true;
		else if (err)
			plan_builder_error(b, where, "%s.%s: '%s' %s", plugin_kind_name(kind), copy,
					   item, why);
		if (err) {
			instance_option_list_free(r.options, r.n);
			goto out;
		}
	}
	plan_builder_add(b, p->descriptor, where, r.options, r.n);
out:
	free(copy);
}

static void set_setting(struct plan_builder *b, const struct plan_settings *g, const char *name,
			const char *value)
{
	struct option_value v = {.kind = OPTION_TEXT, .text = (char *)value};
	char *text;

	if (plan_builder_set(b, options_find(&g->options, name), &v, &text))
		plan_builder_error(b, "", "%s", text ? text : "no memory");
	free(text);
}

static void set_pull(struct plan_builder *b, const struct plan_flags *f)
{
	const struct plan_settings *g = &plan_settings[SETTINGS_METRICS];

	set_setting(b, g, "pull", "true");
	set_setting(b, g, "pulls", options_find(&g->options, "pulls")->def);
	if (!f->listen)
		set_setting(b, g, "listen", options_find(&g->options, "listen")->def);
}

int plan_from_flags(struct plan **ret, const struct plan_flags *f,
		    const struct plugin_folder *folder, struct plan_errors *errors)
{
	struct plan_builder b;
	int r = plan_builder_init(&b, folder, errors);

	if (r)
		return r;
	for (uint32_t i = 0; i < f->nsinks; i++)
		add_flag(&b, FUSEE_SINK, "--sink", f->sinks[i]);
	for (uint32_t i = 0; i < f->ndiscoveries; i++)
		add_flag(&b, FUSEE_DISCOVERY, "--discover", f->discoveries[i]);
	for (uint32_t i = 0; i < f->nunwinders; i++)
		add_flag(&b, FUSEE_UNWINDER, "--unwind", f->unwinders[i]);
	if (!f->nsinks && !f->no_sinks && !f->pull)
		plan_builder_error(&b, "",
				   "no sink: say where profiles go, such as --sink "
				   "pprof:dir=/var/lib/fusee");
	if (f->hz) {
		char number[32];

		snprintf(number, sizeof(number), "%.17g", f->hz);
		set_setting(&b, &plan_settings[SETTINGS_SAMPLE_CPU], "hz", number);
	}
	if (f->listen)
		set_setting(&b, &plan_settings[SETTINGS_METRICS], "listen", f->listen);
	if (f->pull)
		set_pull(&b, f);
	if (f->control)
		set_setting(&b, &plan_settings[SETTINGS_CONTROL], "path", f->control);
	return plan_builder_finish(&b, ret);
}
