// SPDX-License-Identifier: Apache-2.0
#include "lua/internal/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/guess.h"
#include "lua/internal/call.h"
#include "lua/internal/state.h"
#include "lua/internal/target.h"
#include "profile/str.h"
#include "report/model.h"

#define PROFILE_TYPE "fusee.profile" /* the metatable of profiles, in the registry */
#define MAX_ROWS 1000
#define MAX_TOPS 16u /* calls of p:top() in a callback */

struct profile_handle {
	uint64_t call; /* its number */
};

static const struct callback_profile *profile_of(lua_State *L)
{
	const struct profile_handle *h = luaL_testudata(L, 1, PROFILE_TYPE);
	const struct callback_call *call = script_of(L)->call;

	if (!h)
		script_error(L, "top is called as p:top(n)");
	else if (!call || h->call != call->number)
		script_error(L, "a profile is valid until its callback returns");
	return call->profile;
}

/* ---- p:top(n, filter, ..) ---- */

struct row {
	struct fusee_str name, file;
	double self, total;
};

struct top {
	const struct fusee_profile *profile;
	struct render_options options;
	struct row *rows; /* room for n; set to what was found */
	uint32_t n;
	char error[256];
};

static int by_self(const void *a, const void *b, void *model)
{
	const struct render_model *m = model;
	const struct render_function *x = &m->functions[*(const uint32_t *)a],
				     *y = &m->functions[*(const uint32_t *)b];

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x > y) - (x < y);
}

/* Texts are those of the profile. */
static int find_rows(struct top *t, const struct render_model *m)
{
	uint32_t *order = calloc(m->nfunctions + 1, sizeof(*order)), n = 0;
	int64_t sum = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nstacks; i++)
		sum += m->stacks[i].value;
	for (uint32_t i = 0; i < m->nfunctions; i++)
		if (m->functions[i].code < RENDER_REASON)
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), by_self, (void *)(uintptr_t)m);
	t->n = n < t->n ? n : t->n;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct render_function *f = &m->functions[order[i]];

		t->rows[i] = (struct row){.name = f->name,
					  .file = f->library.len ? f->library : f->file,
					  .self = sum ? (double)f->self / (double)sum : 0,
					  .total = sum ? (double)f->total / (double)sum : 0};
	}
	free(order);
	return 0;
}

/* Calls nothing of Lua. 0 or -errno, with a sentence for -EINVAL. */
static int find_top(struct top *t)
{
	struct render_model m;
	struct buf error = {0};
	int r = render_model_make(&m, t->profile, NULL, &t->options, &error);

	if (!r) {
		r = find_rows(t, &m);
		render_model_free(&m);
	} else if (r == -EINVAL && error.len) {
		snprintf(t->error, sizeof(t->error), "%.*s", (int)error.len, error.p);
	}
	buf_fini(&error);
	return r;
}

static void push_row(lua_State *L, const struct row *r)
{
	lua_createtable(L, 0, 4);
	lua_pushlstring(L, r->name.p, r->name.len);
	lua_setfield(L, -2, "name");
	lua_pushlstring(L, r->file.len ? r->file.p : "", r->file.len);
	lua_setfield(L, -2, "file");
	lua_pushnumber(L, r->self);
	lua_setfield(L, -2, "self");
	lua_pushnumber(L, r->total);
	lua_setfield(L, -2, "total");
}

static void read_filters(lua_State *L, struct top *t)
{
	int n = lua_gettop(L);

	if (n - 2 > RENDER_MAX_WHERE)
		script_error(L, "top: more than %d filters", RENDER_MAX_WHERE);
	for (int i = 3; i <= n; i++) {
		if (lua_type(L, i) != LUA_TSTRING)
			script_error(L, "top: a filter is a string such as \"process=web\", got %s",
				     luaL_typename(L, i));
		t->options.where[i - 3] = lua_tostring(L, i);
	}
}

/* The model is made in C, for a time that depends on the profile and not on the script: it does not
 * count for the script's deadline. */
static int call_top(lua_State *L)
{
	struct top t = {.profile = profile_of(L)->profile};
	struct script *s = script_of(L);
	lua_Integer n = lua_isnoneornil(L, 2) ? 10 : luaL_checkinteger(L, 2);
	uint64_t begin;
	int r;

	if (n < 1 || n > MAX_ROWS)
		return script_error(L, "top: the number must be from 1 to %d", MAX_ROWS);
	if (++s->call->tops > MAX_TOPS)
		return script_error(L, "top: more than %u calls in a callback", MAX_TOPS);
	read_filters(L, &t);
	t.n = (uint32_t)n;
	t.rows = lua_newuserdatauv(L, (size_t)n * sizeof(*t.rows), 0);
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	r = find_top(&t);
	s->deadline_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	if (r)
		return script_error(L, "top: %s", *t.error ? t.error : strerror(-r));
	lua_createtable(L, (int)t.n, 0);
	for (uint32_t i = 0; i < t.n; i++) {
		push_row(L, &t.rows[i]);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

/* ---- fields ---- */

static void push_sink(lua_State *L, const struct callback_profile *p)
{
	lua_pushstring(L, p->sink);
}

static void push_labels(lua_State *L, const struct callback_profile *p)
{
	target_push_labels(L, p->profile->resource.at, p->profile->resource.n);
}

static void push_seconds(lua_State *L, const struct callback_profile *p)
{
	lua_pushnumber(L, (double)p->profile->duration_ns / 1e9);
}

/* The sum of the values of this unit. */
static double sum_of(const struct fusee_profile *p, const char *unit)
{
	double sum = 0;

	for (uint32_t k = 0; k < p->types.n; k++) {
		uint32_t of = FUSEE_AT(struct fusee_value_type, p->types, k)->unit;

		if (!fusee_text_is(str_at(p, of), unit))
			continue;
		for (uint32_t i = 0; i < p->samples.n; i++)
			sum += (double)*FUSEE_AT(int64_t, p->values, (uint64_t)i * p->types.n + k);
		break;
	}
	return sum;
}

static void push_samples(lua_State *L, const struct callback_profile *p)
{
	lua_pushnumber(L, sum_of(p->profile, "count"));
}

static void push_cpu(lua_State *L, const struct callback_profile *p)
{
	lua_pushnumber(L, sum_of(p->profile, "nanoseconds") / 1e9);
}

static void push_top(lua_State *L, const struct callback_profile *p)
{
	(void)p;
	lua_pushcfunction(L, call_top);
}

static const struct {
	const char *name;
	void (*push)(lua_State *, const struct callback_profile *);
} fields[] = {{"sink", push_sink},       {"labels", push_labels}, {"duration", push_seconds},
	      {"samples", push_samples}, {"cpu", push_cpu},       {"top", push_top}};

static int profile_index(lua_State *L)
{
	const struct callback_profile *p = profile_of(L);
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
	struct guess g = {.word = name};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (!strcmp(fields[i].name, name)) {
			fields[i].push(L, p);
			return 1;
		}
		guess_offer(&g, fields[i].name);
	}
	return script_error(
		L, "a profile has no '%.60s'" GUESS_HINT, name,
		GUESS_WORDS(g, ": there are sink, labels, duration, samples, cpu and top"));
}

static int profile_newindex(lua_State *L)
{
	return script_error(L, "a profile cannot be changed");
}

void profile_push(lua_State *L)
{
	struct profile_handle *h = lua_newuserdatauv(L, sizeof(*h), 0);

	h->call = script_of(L)->call->number;
	luaL_setmetatable(L, PROFILE_TYPE);
}

void profile_open(lua_State *L)
{
	luaL_newmetatable(L, PROFILE_TYPE);
	lua_pushcfunction(L, profile_index);
	lua_setfield(L, -2, "__index");
	lua_pushcfunction(L, profile_newindex);
	lua_setfield(L, -2, "__newindex");
	lua_pushliteral(L, "profile");
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}
