// SPDX-License-Identifier: Apache-2.0
/* A plan from a script. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/lua_api.h"
#include "config/policy_state.h"

static int run(lua_State *L)
{
	struct script *s = script_of(L);

	api_open(L);
	script_load_file(L, s->path, s->name);
	lua_call(L, 0, 0);
	return 0;
}

static bool was_said(const struct api *a, const char *name, bool *disabled)
{
	for (uint32_t i = 0; i < a->nsaid; i++)
		if (!strcmp(a->said[i].name, name)) {
			*disabled = a->said[i].disabled;
			return true;
		}
	return false;
}

static bool is_native(const struct fusee_plugin *d)
{
	return ((const struct fusee_unwinder_ops *)d->ops)->flags & FUSEE_UNWINDER_NATIVE;
}

static void leave_out(struct api *a, const char *name)
{
	struct plan *p = a->m.plan;
	size_t n = 0;
	char **all;

	while (p->without[n])
		n++;
	all = realloc(p->without, (n + 2) * sizeof(char *));
	if (!all) {
		a->m.no_memory = true;
		return;
	}
	p->without = all;
	all[n] = strdup(name);
	all[n + 1] = NULL;
	if (!all[n])
		a->m.no_memory = true;
}

/* Those that are disabled; and where a line names an unwinder of a language, those of languages
 * that no line names. */
static void choose_unwinders(struct api *a)
{
	const struct plugin_folder *f = a->m.folder;
	bool some = false, disabled = false;
	char name[80];

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < f->n; i++) {
			const struct fusee_plugin *d = f->plugins[i]->descriptor;
			bool said;

			if (d->kind != FUSEE_UNWINDER)
				continue;
			snprintf(name, sizeof(name), "unwind.%s", d->name);
			said = was_said(a, name, &disabled);
			if (!pass)
				some |= said && !disabled && !is_native(d);
			else if (said ? disabled : some && !is_native(d))
				leave_out(a, d->name);
		}
}

static void complete(struct api *a, struct policy *policy)
{
	struct plan *p = a->m.plan;

	p->path = strdup(policy->script.path);
	if (!p->path)
		a->m.no_memory = true;
	choose_unwinders(a);
	if (!p->nsinks && !a->m.errors->n)
		plan_builder_error(&a->m, policy->script.name,
				   "no sink: say where profiles go, such as sink.pprof { dir = "
				   "\"/var/lib/fusee\" }");
}

/* Runs the script; the policy is the plan's then, or freed. */
static void read_script(struct api *a, struct policy *policy)
{
	struct script *s = &policy->script;
	char *text;
	int n, r;

	s->owner = a;
	r = script_enter(s, run, NULL, SCRIPT_RUN_NS, &n, &text);
	s->owner = NULL;
	plan_builder_options_free(a->options, a->noptions);
	if (r && text)
		plan_builder_error(&a->m, "", "%s", text);
	else if (r)
		a->m.no_memory = true;
	free(text);
	if (!r)
		complete(a, policy);
	if (a->has_policy) {
		memcpy(policy->where, a->policy_where, sizeof(policy->where));
		a->m.plan->policy = policy;
	} else {
		policy_free(policy);
	}
}

static int cannot_read(struct plan_builder *m, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r = 0;

	if (fd < 0) {
		r = -errno;
		plan_builder_error(m, "", "cannot read '%s': %s", path, strerror(-r));
		return r;
	}
	close(fd);
	return 0;
}

int plan_from_script(struct plan **ret, const char *path, const struct plugin_folder *folder,
		     struct plan_errors *errors)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	struct api *a = calloc(1, sizeof(*a));
	int r = policy && a ? plan_builder_init(&a->m, folder, errors) : -ENOMEM;

	if (r) {
		*errors = (struct plan_errors){0};
		goto out;
	}
	r = cannot_read(&a->m, path);
	if (r) {
		plan_free(a->m.plan);
		goto out;
	}
	r = dict_init(&policy->texts);
	if (!r)
		r = script_init(&policy->script, path);
	if (r) {
		plan_free(a->m.plan);
		goto out;
	}
	read_script(a, policy);
	policy = NULL;
	r = plan_builder_finish(&a->m, ret);
out:
	policy_free(policy);
	free(a);
	return r;
}
