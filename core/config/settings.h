/* SPDX-License-Identifier: Apache-2.0 */
/* The core's own settings as tables of options, in the form that plugins' options have. */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <fusee/plugin.h>

/* A type of option beside enum fusee_option_type: double; min and max in thousandths. */
#define PLAN_NUMBER 64u
/* Another: a list of rules of relabeling, which only a script can have (lua/internal/relabel.h). */
#define PLAN_RULES 65u

/* A group of settings, "sample.cpu" { hz = 99 }; offsets are those of struct plan. */
struct plan_settings {
	const char *name, *doc;
	struct fusee_table options; /* of struct fusee_option */
};
enum plan_settings_group {
	SETTINGS_SAMPLE_CPU,
	SETTINGS_SAMPLE_ALLOC,
	SETTINGS_SAMPLE_INUSE,
	SETTINGS_SAMPLE_PROBE,
	SETTINGS_METRICS,
	SETTINGS_CONTROL,
	SETTINGS_BUDGET,
	SETTINGS_LABELS,
	SETTINGS_SYMBOLS,
	SETTINGS_N
};
extern const struct plan_settings plan_settings[SETTINGS_N];

/* The options that instances have beside their plugin's own: of sinks every, queue, spool*,
 * per, names, omit, relabel, default; of unwinders enabled; of samplers hz, count. */
struct core_settings {
	uint64_t every; /* ns */
	uint64_t queue; /* bytes */
	char *spool;
	uint64_t spool_size;            /* bytes */
	uint64_t spool_age, spool_sync; /* ns */
	int64_t per;                    /* enum sink_per */
	int64_t names;                  /* enum sink_names */
	struct fusee_table omit;
	uint8_t by_default;
	uint8_t enabled;
	double hz; /* of samplers */
	int64_t count;
};
enum sink_per { PER_WINDOW, PER_TARGET };
enum sink_names { NAMES_LOCAL, NAMES_SERVER };
/* Offsets are those of struct core_settings. */
extern const struct fusee_table plan_sink_options, plan_unwinder_options, plan_sampler_options;

/* Sets an option of type PLAN_NUMBER of the struct at `at`. 0; or -EINVAL with a sentence in *text,
 * malloc'ed or NULL. */
int settings_number(void *at, const struct fusee_option *, const char *value, char **text);
/* The core options of a kind of plugin. */
const struct fusee_table *plan_core_options(uint32_t kind);
/* An option of a plugin, or an option that all plugins of its kind have. NULL: there is none. */
const struct fusee_option *plan_option(const struct fusee_plugin *, const char *name);
#endif
