/* SPDX-License-Identifier: Apache-2.0 */
/* Sets fields of a plugin's ctx from text, as the plugin's table of options describes them. */
#ifndef PLUGIN_OPTIONS_H
#define PLUGIN_OPTIONS_H

#include <fusee/plugin.h>

#include "base/buf.h"
#include "base/guess.h"

/* A value as a script or a flag contains it. */
enum option_value_kind { OPTION_TEXT = 1, OPTION_LIST, OPTION_MAP };

struct option_pair {
	char *key, *value; /* key NULL: of a list */
};

struct option_value {
	enum option_value_kind kind;
	char *text;                /* of OPTION_TEXT: "10s", "true", "42" */
	struct option_pair *pairs; /* of OPTION_LIST and OPTION_MAP */
	uint32_t n;
};

void option_value_fini(struct option_value *);

/* Checks a plugin's table. 0, or -EPROTO with the error in *text: "has option 'x' outside of its
 * ctx" (NULL: no memory). The functions below require a table that passed. */
int options_check(const struct fusee_table *options, uint32_t ctx_size, char **text);
/* NULL: the table lacks the option. */
const struct fusee_option *options_find(const struct fusee_table *options, const char *name);
/* Offers the names of all options. */
void options_offer(const struct fusee_table *options, struct guess *);
/* Appends an option's limits in its unit: "4KiB to 1MiB", "1s to 1d", "at least 1"; nothing if it
 * has none. 0 or -ENOMEM. */
int options_range(struct buf *, const struct fusee_option *);
/* Sets an option's field in ctx. Strings, lists and maps are copied; options_clear() frees them. 0;
 * -EINVAL with a malloc'ed sentence in *text that says what is allowed; -ENOMEM. */
int options_set(void *ctx, const struct fusee_option *, const struct option_value *value,
		char **text);
/* The same from the form of defaults and flags: a list is "a,b", a map "k=v,k=v". */
int options_set_text(void *ctx, const struct fusee_option *, const char *value, char **text);
/* Sets every option that has a default. -EINVAL: a default is wrong; *text as above. */
int options_defaults(void *ctx, const struct fusee_table *options, char **text);
/* Frees the strings, lists and maps of ctx and sets them to NULL; secrets are overwritten first. */
void options_clear(void *ctx, const struct fusee_table *options);
#endif
