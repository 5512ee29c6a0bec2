/* SPDX-License-Identifier: Apache-2.0 */
/* Values of plugin options: from text into the plugin's ctx, checked by type and range. */
#ifndef PLUGIN_OPTIONS_H
#define PLUGIN_OPTIONS_H

#include <fusee/plugin.h>

#include "base/buf.h"

/* A value as a script or a flag gave it. */
enum option_value_kind { OPTION_TEXT = 1, OPTION_LIST, OPTION_MAP };

struct option_pair {
	char *key, *value; /* key NULL: an element of a list */
};

struct option_value {
	enum option_value_kind kind;
	char *text;                /* OPTION_TEXT: "10s", "true", "42" */
	struct option_pair *pairs; /* the others' */
	uint32_t n;
};

void option_value_fini(struct option_value *);

/* Whether the table can be used at all: 0, or -EPROTO with what is wrong in *text ("has ..."). The
 * others take only tables that passed. */
int options_check(const struct fusee_table *options, uint32_t ctx_size, char **text);
/* NULL: no such option. */
const struct fusee_option *options_find(const struct fusee_table *options, const char *name);
/* An option's limits in units: "4KiB to 1MiB", "1s to 1d", "at least 1". Nothing: none. */
int options_range(struct buf *, const struct fusee_option *);
/* Sets one option of ctx. What points to memory is a copy: options_clear() frees it. 0, or -EINVAL
 * with one malloc'ed sentence in *text: what is allowed. */
int options_set(void *ctx, const struct fusee_option *, const struct option_value *value,
		char **text);
/* The same from plain text, as defaults and flags are written: lists "a,b", maps "k=v,k=v". */
int options_set_text(void *ctx, const struct fusee_option *, const char *value, char **text);
/* All defaults of the table, but of required options. 0; -EINVAL: a default is wrong. */
int options_defaults(void *ctx, const struct fusee_table *options, char **text);
void options_clear(void *ctx, const struct fusee_table *options);
#endif
