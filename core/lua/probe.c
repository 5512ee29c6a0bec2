// SPDX-License-Identifier: Apache-2.0
#include "lua/internal/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/parse.h"

#define NAME "sample.probe"
#define MOST_NAME 200u /* bytes: of a label's value */

/* ---- texts ---- */

/* Moves the strings of the table at index 1 into a list at index 3, and its options into a table at
 * index 1. false: another value has no name; recorded. */
static bool split(lua_State *L, struct api *a, const char *where)
{
	lua_Integer n = 0;
	bool good = true;

	lua_newtable(L); /* 2: the options */
	lua_newtable(L); /* 3: the texts */
	for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
		if (lua_type(L, -2) == LUA_TSTRING) {
			lua_pushvalue(L, -2);
			lua_pushvalue(L, -2);
			lua_rawset(L, 2);
		} else if (!lua_isinteger(L, -2) || lua_type(L, -1) != LUA_TSTRING) {
			good = false;
		}
	}
	for (; lua_rawgeti(L, 1, n + 1) == LUA_TSTRING; n++)
		lua_rawseti(L, 3, n + 1);
	lua_pop(L, 1);
	if ((lua_Integer)lua_rawlen(L, 1) != n)
		good = false;
	lua_pushvalue(L, 2);
	lua_replace(L, 1);
	if (!good || !n)
		plan_builder_error(&a->builder, where,
				   NAME " takes probes as texts: " NAME
					" { \"uprobe:/usr/bin/program:function\" }");
	return good && n;
}

static bool is_listed(const struct plan *p, const char *name)
{
	for (uint32_t i = 0; i < p->samplers.nprobes; i++)
		if (!strcmp(p->samplers.probes[i].name, name))
			return true;
	return false;
}

static void append(struct api *a, const char *text, const char *where, uint64_t period)
{
	struct plan_samplers *s = &a->builder.plan->samplers;
	const char *name = s->given.name && *s->given.name ? s->given.name : text;
	struct plan_probe *all, *p;

	if (s->nprobes == PLAN_MAX_PROBES) {
		plan_builder_error(&a->builder, where, NAME ": more than %u probes",
				   PLAN_MAX_PROBES);
		return;
	}
	if (is_listed(a->builder.plan, name)) {
		plan_builder_error(&a->builder, where, NAME ": another has the name '%s'", name);
		return;
	}
	all = realloc(s->probes, (s->nprobes + 1) * sizeof(*all));
	if (all)
		s->probes = all;
	p = all ? &all[s->nprobes] : NULL;
	if (p)
		*p = (struct plan_probe){strdup(text), strdup(name), strdup(where), period};
	s->nprobes += p != NULL;
	if (!p || !p->text || !p->name || !p->where)
		a->builder.no_memory = true;
}

/* ---- the declaration ---- */

static void add(struct api *a, const char *text, const char *where)
{
	const struct probe_kind *kind = probe_kind_of(text);
	const struct plan_probe_options *given = &a->builder.plan->samplers.given;
	struct probe_text t;
	char *why = NULL;
	int r;

	if (!kind) {
		plan_builder_error(&a->builder, where,
				   NAME ": '%s' is no probe: write uprobe:, uretprobe:, usdt: or "
					"rawtp: before it",
				   text);
		return;
	}
	if (api_is_given(a, kind->timed ? "count" : "time")) {
		plan_builder_error(&a->builder, where, NAME ": option '%s' is not of %s: %s",
				   kind->timed ? "count" : "time", kind->name, text);
		return;
	}
	r = probe_text_parse(&t, kind, text, &why);
	if (!r && kind->program != PROBE_TRACEPOINT && *t.path != '/') {
		r = -EINVAL;
		why = strdup("a path is complete, as processes map the file");
	}
	if (!r)
		probe_text_fini(&t);
	if (r)
		plan_builder_error(&a->builder, where, NAME ": %s: %s", text,
				   why ? why : strerror(-r));
	else
		append(a, text, where, kind->timed ? given->time : (uint64_t)given->count);
	free(why);
}

int lua_probe_declare(lua_State *L)
{
	struct api *a = api_of(L, NAME);
	char where[SCRIPT_WHERE];
	const char *name;
	lua_Integer n;

	script_where(L, where);
	if (!api_is_one_table(L, a, NAME, where) || !split(L, a, where))
		return 0;
	api_set_group(L, a, &plan_settings[SETTINGS_SAMPLE_PROBE], where);
	n = (lua_Integer)lua_rawlen(L, 3);
	name = a->builder.plan->samplers.given.name;
	if (name && *name && n > 1)
		plan_builder_error(&a->builder, where, NAME ": the name '%s' is of one probe",
				   name);
	else if (name && strlen(name) > MOST_NAME)
		plan_builder_error(&a->builder, where, NAME ": a name has at most %u bytes",
				   MOST_NAME);
	for (lua_Integer i = 1; (!name || !*name || n == 1) && i <= n; i++) {
		lua_rawgeti(L, 3, i);
		add(a, lua_tostring(L, -1), where);
		lua_pop(L, 1);
	}
	lua_options_fini(&a->options);
	return 0;
}
