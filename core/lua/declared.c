// SPDX-License-Identifier: Apache-2.0
/* What declarations of a script have in common. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guess.h"
#include "lua/internal/api.h"

struct api *api_of(lua_State *L, const char *what)
{
	struct api *a = script_of(L)->owner;

	if (!a)
		script_error(L, "%s cannot be called from %s: the plan is complete", what,
			     script_of(L)->inside);
	return a;
}

/* ---- declarations that may occur once ---- */

const struct api_declared *api_declared(const struct api *a, const char *name)
{
	for (uint32_t i = 0; i < a->ndeclared; i++)
		if (!strcmp(a->declared[i].name, name))
			return &a->declared[i];
	return NULL;
}

struct api_declared *api_declare_once(struct api *a, const char *name, const char *where)
{
	const struct api_declared *before = api_declared(a, name);
	struct api_declared *d;

	if (before) {
		plan_builder_error(&a->builder, where, "%s: given twice, first at %s", name,
				   before->where);
		return NULL;
	}
	if (a->ndeclared == API_MAX_DECLARED) {
		plan_builder_error(&a->builder, where, "%s: too many declarations", name);
		return NULL;
	}
	d = &a->declared[a->ndeclared++];
	*d = (struct api_declared){0};
	snprintf(d->name, sizeof(d->name), "%s", name);
	snprintf(d->where, sizeof(d->where), "%s", where);
	return d;
}

bool api_is_one_table(lua_State *L, struct api *a, const char *name, const char *where)
{
	if (lua_gettop(L) == 1 && lua_istable(L, 1))
		return true;
	plan_builder_error(&a->builder, where, "%s takes one table: %s { option = value }", name,
			   name);
	return false;
}

static const struct fusee_option *setting_option(const void *arg, const char *name)
{
	return options_find(arg, name);
}

/* Sets the group's settings from a->options. */
static void set_all(struct api *a, const struct plan_settings *g, const char *where)
{
	struct guess guess;

	for (uint32_t i = 0; i < a->options.n; i++) {
		struct instance_option *o = &a->options.list[i];
		const struct fusee_option *option = options_find(&g->options, o->name);
		char *text = NULL;

		if (!option) {
			guess = (struct guess){.word = o->name};
			options_offer(&g->options, &guess);
			plan_builder_error(&a->builder, where, "%s: unknown option '%s'" GUESS_HINT,
					   g->name, o->name, GUESS_WORDS(guess, ""));
		} else if (o->value.kind &&
			   plan_builder_set(&a->builder, option, &o->value, &text)) {
			plan_builder_error(&a->builder, where, "%s: %s", g->name,
					   text ? text : "no memory");
		}
		free(text);
	}
}

bool api_is_given(const struct api *a, const char *name)
{
	for (uint32_t i = 0; i < a->options.n; i++)
		if (!strcmp(a->options.list[i].name, name))
			return true;
	return false;
}

/* Those that were not given have their defaults. */
static void set_defaults(struct api *a, const struct plan_settings *g, const char *where)
{
	for (uint32_t i = 0; i < g->options.n; i++) {
		const struct fusee_option *o = FUSEE_AT(struct fusee_option, g->options, i);
		struct option_value v = {.kind = OPTION_TEXT, .text = (char *)o->def};
		char *text;

		if (api_is_given(a, o->name))
			continue;
		if (!o->def) {
			plan_builder_error(&a->builder, where, "%s: option '%s' must be given",
					   g->name, o->name);
		} else if (plan_builder_set(&a->builder, o, &v, &text)) {
			a->builder.no_memory = true;
			free(text);
		}
	}
}

void api_set_group(lua_State *L, struct api *a, const struct plan_settings *g, const char *where)
{
	lua_options_read(L, &a->options, g->name, where, 1, setting_option, &g->options);
	set_all(a, g, where);
	set_defaults(a, g, where);
}
