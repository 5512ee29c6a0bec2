// SPDX-License-Identifier: Apache-2.0
#include "bpf/sampler.h"
#include "lua/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lua/internal/api.h"
#include "lua/callback.h"
#include "lua/internal/library.h"
#include "lua/internal/state.h"

static int run(lua_State *L)
{
	struct script *s = script_of(L);

	library_open(L);
	api_open(L);
	callbacks_open(L);
	script_load_file(L, s->path, s->name);
	lua_call(L, 0, 0);
	return 0;
}

/* ---- the plan ---- */

static void check_inuse(struct api *a, const struct script *s)
{
	const struct plan *p = a->builder.plan;

	if (p->samplers.alloc_bytes && p->samplers.inuse_bytes)
		plan_builder_error(&a->builder, s->name,
				   "sample.inuse has what sample.alloc has: write only one of "
				   "them");
	if (p->samplers.inuse_bytes && p->nsinks == PLAN_MAX_SINKS)
		plan_builder_error(&a->builder, s->name,
				   "sample.inuse takes the place of a sink: write at most %d sinks "
				   "beside it",
				   PLAN_MAX_SINKS - 1);
}

static void complete_plan(struct api *a, const struct script *s)
{
	struct plan *p = a->builder.plan;

	p->path = strdup(s->path);
	if (!p->path)
		a->builder.no_memory = true;
	if (p->pulls.served && !*p->listen)
		plan_builder_error(&a->builder, s->name, "metrics: pull needs an address: listen");
	if (p->samplers.n && p->sampler == SAMPLER_SNAPSHOT)
		plan_builder_error(&a->builder, s->name,
				   "%s: it is sampled by BPF, not by the sampler "
				   "'snapshot' of sample.cpu",
				   p->samplers.list[0]->name);
	if (plan_hit_bytes(p) && p->sampler == SAMPLER_SNAPSHOT)
		plan_builder_error(&a->builder, s->name,
				   "sample.%s: it is sampled by BPF, not by the sampler "
				   "'snapshot' of sample.cpu",
				   p->samplers.inuse_bytes ? "inuse" : "alloc");
	check_inuse(a, s);
	if (p->samplers.nprobes && p->sampler == SAMPLER_SNAPSHOT)
		plan_builder_error(&a->builder, p->samplers.probes[0].where,
				   "sample.probe: it is sampled by BPF, not by the sampler "
				   "'snapshot' of sample.cpu");
	if (!p->nsinks && !p->pulls.served && !a->builder.errors->n)
		plan_builder_error(&a->builder, s->name,
				   "no sink: say where profiles go, such as sink.pprof { dir = "
				   "\"/var/lib/fusee\" }, or let them be pulled: metrics { pull = "
				   "true }");
}

static void free_script(struct script *s)
{
	script_fini(s);
	free(s);
}

/* Runs the script and completes the builder's plan, which takes the script over if there is a
 * policy or a callback; else it is freed. */
static void run_script(struct api *a, struct script *s)
{
	char *text;
	int n, r;

	a->options.builder = &a->builder;
	s->owner = a;
	r = script_enter(s, run, NULL, SCRIPT_RUN_NS, &n, &text);
	s->owner = NULL;
	lua_options_fini(&a->options);
	relabel_rules_free(a->rules);
	if (r && text)
		plan_builder_error(&a->builder, "", "%s", text);
	else if (r)
		a->builder.no_memory = true;
	free(text);
	if (!r)
		complete_plan(a, s);
	if (a->builder.plan->has_policy || a->builder.plan->callbacks.n) {
		a->builder.plan->script = s;
		a->builder.plan->callbacks.free_script = free_script;
	} else {
		free_script(s);
	}
}

static int check_readable(struct plan_builder *b, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r = 0;

	if (fd < 0) {
		r = -errno;
		plan_builder_error(b, "", "cannot read '%s': %s", path, strerror(-r));
		return r;
	}
	close(fd);
	return 0;
}

int plan_from_script(struct plan **ret, const char *path, const struct plugin_folder *folder,
		     struct plan_errors *errors)
{
	struct script *s = calloc(1, sizeof(*s));
	struct api *a = calloc(1, sizeof(*a));
	int r = -ENOMEM;

	*errors = (struct plan_errors){0};
	if (!s || !a || plan_builder_init(&a->builder, folder, errors))
		goto out;
	r = check_readable(&a->builder, path);
	if (!r)
		r = script_init(s, path);
	if (r) {
		plan_free(a->builder.plan);
		goto out;
	}
	run_script(a, s);
	s = NULL;
	r = plan_builder_finish(&a->builder, ret);
out:
	free(s);
	free(a);
	return r;
}
