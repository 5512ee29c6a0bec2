/* SPDX-License-Identifier: Apache-2.0 */
/* Describes plugins and settings in words, from their tables of options. The functions append to a
 * buffer; they return 0 or -ENOMEM. columns: the maximum length of a line. */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

#include "base/buf.h"
#include "config/settings.h"
#include "plugin/plugin.h"

/* An option's type: "bool", "duration", "one of window, target". */
int help_type(struct buf *, const struct fusee_option *);
/* An option's limits: "1s to 1d"; nothing if it has none. */
int help_range(struct buf *, const struct fusee_option *);
/* A number of bytes in the largest unit that divides it: "64MiB", "1000 bytes". */
int help_size(struct buf *, uint64_t);
/* An indented paragraph for each option. */
int help_options(struct buf *, const struct fusee_table *options, unsigned int columns);
/* A text in lines that begin with `indent` blanks. */
int help_wrap(struct buf *, const char *text, unsigned int indent, unsigned int columns);
/* A plugin's description and options; of a sink also the options that every sink has. */
int help_plugin(struct buf *, const struct fusee_plugin *, unsigned int columns);
/* A plugin "sink.pprof", a setting "sample.cpu", a function "policy"; "": an overview of all.
 * -ENOENT: no such topic. */
int help_topic(struct buf *, const struct plugin_folder *, const char *topic, unsigned int columns);
#endif
