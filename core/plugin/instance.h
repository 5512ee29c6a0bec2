/* SPDX-License-Identifier: Apache-2.0 */
/* Instances: a plugin with its ctx, its options and a name. An instance is used by one thread at a
 * time, except where include/fusee allows more. */
#ifndef PLUGIN_INSTANCE_H
#define PLUGIN_INSTANCE_H

#include <stdbool.h>

#include <fusee/plugin.h>

#include "plugin/option_list.h"
#include "plugin/internal/secrets.h"

/* An instance as a plan describes it. */
struct instance_options {
	const char *name;  /* "sink.http", "sink.http#2": unique in a plan. Copied */
	const char *where; /* "fusee.lua:12", "--sink"; "" none. Copied */
	const struct instance_option *options;
	uint32_t n;
	void *owner; /* instance->owner */
};

struct fusee_instance {
	const struct fusee_plugin *descriptor;
	char *name, *where;
	char *given;      /* the options that were set: option_text() */
	void *ctx;        /* of the plugin, descriptor->ctx_size bytes */
	void *owner;      /* the object that implements the host's functions */
	char *error;      /* text of the last host->fail(); NULL: none */
	uint32_t misused; /* bit i: enum plugin_misuse i was reported */
	bool begun;       /* init() was called, so fini() must be */
	struct secrets secrets;
};

/*
 * Makes an instance: allocates ctx, checks and sets the options, calls init(). init() is not called
 * if an option is wrong. 0, or -errno with a malloc'ed sentence in *text: "fusee.lua:12:
 * sink.pprof: cannot open '/nope': No such file or directory" (NULL: no memory).
 */
int instance_new(struct fusee_instance **ret, const struct fusee_plugin *,
		 const struct fusee_host *, const struct instance_options *, char **text);
/* Checks the options without making an instance. -EINVAL: *text has a line for each wrong option;
 * -ENOMEM: *text may be NULL. */
int instance_check(const struct fusee_plugin *, const struct instance_options *, char **text);
void instance_free(struct fusee_instance *); /* calls fini() if begun; NULL is valid */
/* "fusee.lua:12: sink.pprof: TEXT" with the text of the last host->fail(), or strerror(err) if
 * there was none. Resets that text. Owned by the caller; NULL: no memory. */
char *instance_sentence(struct fusee_instance *, int err);
/* [any thread; reads folders] Whether a file that host->read_secret() has read for the instance has
 * changed. True once for each change. */
bool instance_secret_changed(struct fusee_instance *);
#endif
