/* SPDX-License-Identifier: Apache-2.0 */
/* One configured use of a plugin: its ctx with its options, and what its calls to the host need. */
#ifndef PLUGIN_INSTANCE_H
#define PLUGIN_INSTANCE_H

#include <stdbool.h>

#include <fusee/plugin.h>

#include "plugin/options.h"

struct plugin;

struct instance_option {
	char *name;
	struct option_value value;
	int line; /* of the script, 0: none */
};

void instance_option_list_free(struct instance_option *, uint32_t n); /* the array too */

/* What a plan says of one. */
struct instance_options {
	const char *name;  /* "sink.http", "sink.http#2": unique in a plan. Copied */
	const char *where; /* "fusee.lua:12" or "--sink"; "" none. Copied */
	const struct instance_option *options;
	uint32_t n;
	void *owner; /* for the host's calls */
};

struct fusee_instance {
	const struct fusee_plugin *descriptor;
	char *name, *where;
	void *ctx;
	void *owner;
	char *error;      /* of host->fail */
	uint32_t misused; /* bits by enum plugin_misuse: it was told */
	bool begun;       /* init was called: fini is owed */
};

/*
 * ctx, options checked and set, init(). Refused options do not come to init. 0, or -errno with one
 * malloc'ed sentence in *text: "fusee.lua:12: sink.pprof: cannot open '/nope': No such file or
 * directory".
 */
int instance_new(struct fusee_instance **ret, const struct fusee_plugin *,
		 const struct fusee_host *, const struct instance_options *, char **text);
/* Only the options are checked; nothing is made. -EINVAL: *text has one sentence a line, each wrong
 * option's. */
int instance_check(const struct fusee_plugin *, const struct instance_options *, char **text);
void instance_free(struct fusee_instance *); /* fini; NULL is fine */
/* "fusee.lua:12: sink.pprof: TEXT", TEXT being what the last host->fail() said, else strerror(err);
 * and forgets it. The caller frees it. */
char *instance_sentence(struct fusee_instance *, int err);
#endif
