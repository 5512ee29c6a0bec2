/* SPDX-License-Identifier: Apache-2.0 */
/* The core's own settings as tables of options, in the form that plugins' options have. */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <fusee/plugin.h>

/* A type of option beside enum fusee_option_type: double; min and max in thousandths. */
#define PLAN_NUMBER 64u

/* A group of settings, "sample.cpu" { hz = 99 }; offsets are those of struct plan. */
struct plan_settings {
	const char *name, *doc;
	struct fusee_table options; /* of struct fusee_option */
};
enum plan_settings_group { SETTINGS_SAMPLE_CPU, SETTINGS_METRICS, SETTINGS_CONTROL, SETTINGS_N };
extern const struct plan_settings plan_settings[SETTINGS_N];

/* The options that every sink has beside its plugin's own: every, queue, per, omit. */
struct sink_settings {
	uint64_t every; /* ns */
	uint64_t queue; /* bytes */
	int64_t per;    /* enum sink_per */
	struct fusee_table omit;
};
enum sink_per { PER_WINDOW, PER_TARGET };
extern const struct fusee_table plan_sink_options; /* offsets are those of struct sink_settings */
#endif
