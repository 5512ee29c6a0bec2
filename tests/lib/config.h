/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of plans: a folder of plugins that are part of the test, and scripts as texts. */
#ifndef CONFIG_TEST_H
#define CONFIG_TEST_H

#include "config/flags.h"
#include "lua/policy.h"
#include "lua/script.h"
#include "test.h"

struct box {
	const char *dir, *token;
	int64_t level;
	struct fusee_table tags, headers;
	int inits;
};

static const struct fusee_option box_options[] = {
	{.name = "dir", .type = FUSEE_STRING, .offset = offsetof(struct box, dir)},
	{.name = "token", .type = FUSEE_SECRET, .offset = offsetof(struct box, token), .def = ""},
	{.name = "level",
	 .type = FUSEE_INT,
	 .offset = offsetof(struct box, level),
	 .def = "6",
	 .min = 1,
	 .max = 9},
	{.name = "tags", .type = FUSEE_LIST, .offset = offsetof(struct box, tags), .def = ""},
	{.name = "headers", .type = FUSEE_MAP, .offset = offsetof(struct box, headers), .def = ""},
};
static const struct fusee_sink_ops box_ops = {.size = sizeof(box_ops)};
static const struct fusee_plugin box_plugin = {.kind = FUSEE_SINK,
					       .name = "box",
					       .options = {box_options, 5, sizeof(*box_options)},
					       .ctx_size = sizeof(struct box),
					       .ops = &box_ops};

static const struct fusee_discovery_ops crowd_ops = {.size = sizeof(crowd_ops)};
static const struct fusee_plugin crowd_plugin = {
	.kind = FUSEE_DISCOVERY, .name = "crowd", .ops = &crowd_ops};
static const struct fusee_option keeper_options[] = {{.name = "url", .type = FUSEE_STRING}};
static const struct fusee_plugin keeper_plugin = {
	.kind = FUSEE_DISCOVERY,
	.name = "keeper",
	.options = {keeper_options, 1, sizeof(*keeper_options)},
	.ctx_size = 8,
	.ops = &crowd_ops};

static const struct fusee_unwinder_ops native_ops = {.size = sizeof(native_ops),
						     .flags = FUSEE_UNWINDER_NATIVE};
static const struct fusee_unwinder_ops language_ops = {.size = sizeof(language_ops)};
static const struct fusee_plugin native_plugin = {
	.kind = FUSEE_UNWINDER, .name = "native", .ops = &native_ops};
static const struct fusee_option snake_options[] = {
	{.name = "depth", .type = FUSEE_INT, .def = "7", .min = 1, .max = 99}};
static const struct fusee_plugin snake_plugin = {
	.kind = FUSEE_UNWINDER,
	.name = "snake",
	.options = {snake_options, 1, sizeof(*snake_options)},
	.ctx_size = 8,
	.ops = &language_ops};
static const struct fusee_plugin gem_plugin = {
	.kind = FUSEE_UNWINDER, .name = "gem", .ops = &language_ops};

static struct plugin config_plugins[] = {
	{.descriptor = &box_plugin}, {.descriptor = &crowd_plugin},  {.descriptor = &keeper_plugin},
	{.descriptor = &gem_plugin}, {.descriptor = &native_plugin}, {.descriptor = &snake_plugin}};
static struct plugin *config_pointers[] = {&config_plugins[0], &config_plugins[1],
					   &config_plugins[2], &config_plugins[3],
					   &config_plugins[4], &config_plugins[5]};
static const struct plugin_folder config_folder = {config_pointers, 6, NULL, 0};

#ifdef CHECK_STR /* a test, and no fuzz target */
/* The script as a file "s.lua" of the test's folder, which this process is in then. */
__attribute__((unused)) static void config_write(const char *text)
{
	FILE *f;

	CHECK(!chdir(test_dir()));
	f = fopen("s.lua", "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

/* There is no plan of this script, first of all for this reason. */
__attribute__((unused)) static void config_refused(const char *text, const char *why)
{
	struct plan_errors errors;
	struct plan *p = NULL;

	config_write(text);
	CHECK_INT(plan_from_script(&p, "s.lua", &config_folder, &errors), -EINVAL);
	CHECK(errors.n && !p);
	CHECK_STR(errors.texts[0], why);
	plan_errors_fini(&errors);
}

/* The plan of a script that is right. */
__attribute__((unused)) static struct plan *config_plan(const char *text)
{
	struct plan_errors errors;
	struct plan *p = NULL;
	int r;

	config_write(text);
	r = plan_from_script(&p, "s.lua", &config_folder, &errors);
	for (uint32_t i = 0; i < errors.n; i++)
		fprintf(stderr, "# %s\n", errors.texts[i]);
	plan_errors_fini(&errors);
	CHECK_INT(r, 0);
	return p;
}
#endif
#endif
