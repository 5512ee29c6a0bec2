// SPDX-License-Identifier: Apache-2.0
#include "lua/internal/relabel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guess.h"
#include "relabel/rules.h"

static const struct fusee_option *rule_option(const void *arg, const char *name)
{
	return options_find(arg, name);
}

static void unknown_field(struct api *a, const char *what, const char *where, const char *name)
{
	struct guess g = {.word = name};

	options_offer(&relabel_rule_options, &g);
	plan_builder_error(&a->builder, where, "%s: unknown field '%.80s'" GUESS_HINT, what, name,
			   GUESS_WORDS(g, ""));
}

/* Sets the rule's fields from a->options. false: something was wrong; recorded. */
static bool set_fields(struct api *a, struct relabel_rule_text *rule, const char *what,
		       const char *where)
{
	bool good = true;

	for (uint32_t i = 0; i < a->options.n; i++) {
		const struct instance_option *o = &a->options.list[i];
		const struct fusee_option *known = options_find(&relabel_rule_options, o->name);
		char *text = NULL;

		if (!known) {
			unknown_field(a, what, where, o->name);
			good = false;
		} else if (!o->value.kind) {
			good = false; /* its type is wrong, which was recorded */
		} else if (options_set(rule, known, &o->value, &text)) {
			plan_builder_error(&a->builder, where, "%s: %s", what,
					   text ? text : "no memory");
			good = false;
		}
		free(text);
	}
	return good;
}

/* Compiles the rule in a->options. Calls nothing of Lua, which could raise past the frees. */
static void add_rule(struct api *a, const char *what, const char *where)
{
	struct relabel_rule_text rule = {0};
	char *text = NULL;
	int r = options_defaults(&rule, &relabel_rule_options, &text);

	free(text);
	text = NULL;
	if (!r && set_fields(a, &rule, what, where))
		r = relabel_rules_add(a->rules, &rule, &text);
	if (r && text)
		plan_builder_error(&a->builder, where, "%s: %s", what, text);
	else if (r)
		a->builder.no_memory = true;
	free(text);
	options_clear(&rule, &relabel_rule_options);
}

void lua_relabel_read(lua_State *L, struct api *a, int index, const char *what, const char *where)
{
	lua_Integer n, entries = 0;
	char name[128];

	if (!lua_istable(L, index)) {
		plan_builder_error(&a->builder, where, "%s must be a list of rules, got %s", what,
				   luaL_typename(L, index));
		return;
	}
	n = (lua_Integer)lua_rawlen(L, index);
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
		entries++;
	if (entries != n) {
		plan_builder_error(&a->builder, where,
				   "%s must be a list of rules: { { action = .. }, { .. } }", what);
		return;
	}
	a->rules = n ? relabel_rules_new(where) : NULL; /* {}: no rules */
	if (n && !a->rules)
		a->builder.no_memory = true;
	for (lua_Integer i = 1; a->rules && i <= n; i++) {
		snprintf(name, sizeof(name), "%s: rule %lld", what, (long long)i);
		lua_rawgeti(L, index, i);
		if (lua_istable(L, -1)) {
			lua_options_read(L, &a->options, name, where, lua_gettop(L), rule_option,
					 &relabel_rule_options);
			add_rule(a, name, where);
			lua_options_fini(&a->options);
		} else {
			plan_builder_error(&a->builder, where, "%s must be a table, got %s", name,
					   luaL_typename(L, -1));
		}
		lua_pop(L, 1);
	}
}

void lua_relabel_of_sink(lua_State *L, struct api *a, const char *sink, const char *where)
{
	char what[128];

	lua_pushliteral(L, "relabel");
	lua_rawget(L, 1);
	snprintf(what, sizeof(what), "%s: relabel", sink);
	if (!lua_isnil(L, -1))
		lua_relabel_read(L, a, lua_gettop(L), what, where);
	lua_pop(L, 1);
}

struct relabel_rules *lua_relabel_take(struct api *a)
{
	struct relabel_rules *rules = a->rules;

	a->rules = NULL;
	return rules;
}
