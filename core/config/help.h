/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins and settings in words, from their tables of options. */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

#include "base/buf.h"
#include "config/settings.h"
#include "plugin/plugin.h"

/* "bool", "duration", "one of window, target"; one option's type. */
int help_type(struct buf *, const struct fusee_option *);
/* "1s to 24h"; nothing where there are no limits. */
int help_range(struct buf *, const struct fusee_option *);
/* "64MiB", "1000": in the largest unit of which it is a whole number. */
int help_size(struct buf *, uint64_t);
/* An option a paragraph, indented, lines of at most `columns`. */
int help_options(struct buf *, const struct fusee_table *options, unsigned int columns);
/* Text in lines of at most `columns`, each after `indent` blanks, and a newline. */
int help_wrap(struct buf *, const char *text, unsigned int indent, unsigned int columns);
/* A plugin: what it is, its options and, for sinks, those of every sink. */
int help_plugin(struct buf *, const struct fusee_plugin *, unsigned int columns);
/* "": what there is; "sink.pprof", "sample.cpu", "policy": that. -ENOENT: no such topic. */
int help_topic(struct buf *, const struct plugin_folder *, const char *topic, unsigned int columns);
#endif
