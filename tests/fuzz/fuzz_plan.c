// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/lua/script.c core/lua/action.c core/lua/api.c core/lua/callback.c
// sources: core/lua/library.c core/lua/options.c core/lua/policy.c core/lua/profile.c
// sources: core/lua/relabel.c core/relabel/regex.c core/relabel/regex_syntax.c core/relabel/rules.c
// sources: core/lua/state.c core/lua/target.c core/lua/pattern.c core/config/plan.c
// sources: core/config/plan_builder.c core/config/plan_json.c core/config/settings.c core/config/help.c
// sources: core/plugin/options.c core/plugin/instance.c core/plugin/secrets.c core/plugin/option_list.c
// sources: core/base/buf.c core/base/clock.c core/base/arena.c core/base/dict.c core/base/guess.c core/base/json.c core/base/text.c
// sources: core/base/hashmap.c core/base/metrics.c core/base/user_budget.c core/base/utf8.c core/target/labelset.c
// sources: core/report/labels.c core/report/model.c core/report/modules.c
// sources: core/report/change.c core/report/samples.c core/report/frames.c core/report/text.c core/profile/omit.c
// sources: core/fetcher/servers.c core/lua/declared.c core/lua/probe.c core/probes/parse.c core/probes/filter.c
// flags: -I/usr/include/lua5.4 -Itests
// libs: -llua5.4 -lpcre2-8
// clang-format on
// Any text as a script: a plan, or sentences about what is wrong, within the limits of memory and
// time; a plan can be shown, and its policy and callbacks be called.
#include "fuzz.h"
#include <json-c/json.h>

/* Of the tests' helpers only the plugins. */
#define TEST_H
#define CHECK(x)                 \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)
#define CHECK_INT(a, b) CHECK((a) == (b))
#include "lib/config.h"

#include "base/log.h"
#include "base/utf8.h"
#include "lua/callback.h"

/* ---- what core/config has of other rooms ---- */

const char *const sampler_choices[] = {"auto", "bpf", "snapshot", NULL};

const char *plugin_kind_name(uint32_t kind)
{
	static const char *const names[] = {[FUSEE_SINK] = "sink",
					    [FUSEE_DISCOVERY] = "discover",
					    [FUSEE_UNWINDER] = "unwind",
					    [FUSEE_SAMPLER] = "sample"};

	return kind < sizeof(names) / sizeof(*names) ? names[kind] : NULL;
}

const struct plugin *plugin_folder_find(const struct plugin_folder *f, uint32_t kind,
					const char *name)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->plugins[i]->descriptor->kind == kind &&
		    !strcmp(f->plugins[i]->descriptor->name, name))
			return f->plugins[i];
	return NULL;
}

uint32_t plugin_kind(const struct plugin *p)
{
	return p->descriptor->kind;
}

const char *plugin_name(const struct plugin *p)
{
	return p->descriptor->name;
}

const char *plugin_folder_refusal(const struct plugin_folder *f, uint32_t kind, const char *name)
{
	(void)f;
	(void)kind;
	(void)name;
	return NULL;
}

static void ask(const struct plan *p)
{
	static const struct fusee_label labels[] = {
		{.key = {"process", 7}, .str = {"postgres", 8}},
		{.key = {"cgroup", 6}, .str = {"/system.slice/x.service", 23}},
	};
	struct policy_answer a;
	char *text = NULL;
	int r = lua_policy_ask(p, labels, 2, &a, &text);

	if ((r == -EINVAL) != !!text && r != -ENOMEM)
		abort();
	if (a.hz < 0.1 || a.hz > 20000 || a.nlabels > POLICY_MAX_LABELS ||
	    (p->nsinks < 64 && a.sinks >> p->nsinks))
		abort();
	for (uint32_t i = 0; i < a.nlabels; i++)
		if (!utf8_valid(a.labels[i].str.p, a.labels[i].str.len))
			abort();
	free(text);
}

static void call(const struct plan *p, uint32_t i)
{
	static const struct fusee_label labels[] = {
		{.key = {"process", 7}, .str = {"postgres", 8}}};
	static const pid_t pids[] = {1, 2};
	static const struct callback_target targets[] = {
		{.labels = labels, .nlabels = 1, .pids = pids, .npids = 2, .hz = 19, .cpu = 0.5},
		{.refused = true},
	};
	const struct callback_view view = {targets, 2};
	const struct fusee_profile empty = {.size = sizeof(empty)};
	const struct callback_profile profile = {"sink.memory", &empty};
	struct callback_actions actions = {0};
	char *text = NULL;
	int r = p->callbacks.list[i].period_ns ? lua_callback_run(p, i, &view, &actions, &text)
					       : lua_callback_profile(p, i, &profile, &text);

	if ((r == -EINVAL) != !!text && r != -ENOMEM)
		abort();
	for (size_t k = 0; k < actions.n; k++)
		if (r || actions.list[k].target >= view.ntargets)
			abort();
	callback_actions_fini(&actions);
	free(text);
}

static void show(const struct plan *p)
{
	struct buf b = {0};

	if (plan_json(p, &b) || !utf8_valid(b.p, b.len))
		abort();
	buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = file_of(data, size);
	struct plan_errors errors;
	struct plan *p = NULL;
	char path[64];
	int r;

	log_set_level(0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = plan_from_script(&p, path, &config_folder, &errors);
	if (!r != !!p || (r == -EINVAL && !errors.n) || (!r && errors.n) ||
	    errors.n > PLAN_MAX_ERRORS + 1)
		abort();
	if (p) {
		show(p);
		for (int i = 0; i < 3; i++)
			ask(p);
		for (uint32_t i = 0; i < p->callbacks.n; i++)
			call(p, i);
	}
	plan_free(p);
	plan_errors_fini(&errors);
	close(fd);
	return 0;
}
