/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, checks and loads plugins. */
#ifndef PLUGIN_PLUGIN_H
#define PLUGIN_PLUGIN_H

#include <stdint.h>

#include <fusee/plugin.h>

#include "plugin/instance.h"

/* A plugin; once it is loaded its code is never unloaded, also not by plugin_free(). */
struct plugin {
	const struct fusee_plugin *descriptor; /* NULL: not loaded yet */
	char *path;
	/* Read from its file until it is loaded: plugin_kind() and plugin_name() are always right.
	 */
	uint32_t kind;
	char *name;
	char *refused; /* why it can't be loaded, a sentence; or NULL */
};

/* The plugins of one or more folders, sorted by kind and name. */
struct plugin_folder {
	struct plugin **plugins;
	uint32_t n;
	char **refused; /* a sentence each: "plugin '/x/y.so' was built for plugin ABI 0.1, .." */
	uint32_t nrefused;
};

/* The folders to search, separated by ':': $FUSEE_PLUGIN_PATH (ignored as secure_getenv(3) says),
 * else plugins/ beside the executable, else the installed folder. Owned by the caller; NULL: no
 * memory. */
char *plugin_default_dir(void);

/* Loads a file that check_file() accepts and whose descriptor is right. 0; -errno with a malloc'ed
 * sentence in *text; -ENOMEM with a sentence or NULL. */
int plugin_load(const char *path, struct plugin **ret, char **text);
void plugin_free(struct plugin *);
/* Finds the *.so of the folders in dir ("a:b"), of one kind (0: of all), without loading plugins
 * whose files tell kind and name. Refused files become sentences in ret->refused, which the caller
 * logs. 0, -ENOENT (a folder does not exist), -ENOMEM. */
int plugin_folder_open(const char *dir, uint32_t kind, struct plugin_folder *ret);
void plugin_folder_close(struct plugin_folder *);
/* Loads the plugin of this kind and name. NULL: there is none, or plugin_folder_refusal(). */
const struct plugin *plugin_folder_find(const struct plugin_folder *, uint32_t kind,
					const char *name);
/* Why plugin_folder_find() returned NULL; NULL: there is no such plugin. */
const char *plugin_folder_refusal(const struct plugin_folder *, uint32_t kind, const char *name);
/* Loads all plugins; adds those that can't be loaded to `refused`. 0 or -ENOMEM. */
int plugin_folder_load(struct plugin_folder *);
uint32_t plugin_kind(const struct plugin *);
const char *plugin_name(const struct plugin *);
/* The namespace of a kind in scripts: "sink", "discover", "unwind", "sample". NULL: unknown kind.
 */
const char *plugin_kind_name(uint32_t kind);

/* Instances of unwinders, sorted by `order`, then by name. */
struct plugin_set {
	struct fusee_instance **instances;
	uint32_t n;
};

/* Options of one unwinder; texts and options are borrowed. */
struct unwinder_options {
	const char *name, *where; /* "python"; "fusee.lua:12", "--unwind", "" none */
	const struct instance_option *options;
	uint32_t n;
};

/* Selects unwinders and their options; unwinders that are not named have default options. */
struct unwinder_choice {
	const char *const *without; /* names, ends with NULL; NULL: none */
	const struct unwinder_options *options;
	uint32_t n;
};

/* Makes an instance of each chosen unwinder of dir (choice NULL: all, with default options). An
 * unwinder that is refused or whose init() fails is logged as a warning and skipped. 0, -ENOENT,
 * -ENOMEM. */
int plugin_set_open(const char *dir, const struct fusee_host *, const struct unwinder_choice *,
		    struct plugin_set *ret);
void plugin_set_close(struct plugin_set *);

#define PLUGIN_MAX_SAMPLERS 8u /* at once */

/* A sampler that is used, and its options; texts and options are borrowed. */
struct chooser_options {
	const struct fusee_plugin *descriptor;
	const char *where; /* "fusee.lua:12", "" none */
	const struct instance_option *options;
	uint32_t n;
	uint64_t period; /* in its unit */
};

/* Instances of samplers, by their number. */
struct chooser_set {
	struct fusee_instance *at[PLUGIN_MAX_SAMPLERS];
	uint32_t n;
};

/* The descriptor of the sampler of this name, which stays valid: plugins are never unloaded. 0;
 * -ENOENT: dir has none; -EPROTO: it is refused, with a malloc'ed sentence in *text; -ENOMEM. */
int plugin_sampler_find(const char *dir, const char *name, const struct fusee_plugin **ret,
			char **text);
/* Offers the names of all samplers of dir, and appends them to `names`, each with a blank. */
void plugin_samplers_offer(const char *dir, struct guess *, struct buf *names);
/* As instance_new(). */
int plugin_sampler_open(const struct chooser_options *, struct fusee_instance **ret, char **text);
const struct fusee_sampler_ops *plugin_sampler_ops(const struct fusee_plugin *);
/* The sampler of this number; NULL: there is none. */
const struct fusee_sampler_ops *plugin_chooser_ops(const struct chooser_set *, uint32_t number);
/* Frees the instances. */
void plugin_choosers_close(struct chooser_set *);

/* Distinguishes the file of a plugin from other files, also from an earlier build of the plugin.
 */
struct plugin_stamp {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
};
struct plugin_stamp plugin_stamp(const struct fusee_plugin *); /* zeros: unknown */

/* The functions of struct fusee_host that are the same for every kind of plugin. */
void plugin_host_log(struct fusee_instance *, int level, const char *text);
int plugin_host_fail(struct fusee_instance *, int err, const char *text);
void plugin_host_count(struct fusee_instance *, const char *metric,
		       const struct fusee_label *labels, uint32_t n, uint64_t add);
int plugin_host_read_secret(struct fusee_instance *, const char *path, char *buf, uint32_t cap);
extern const struct fusee_host plugin_host_base; /* these four and no other function */

/* Wrong calls of a host function that are also logged, because -EINVAL alone explains too
 * little. */
enum plugin_misuse {
	PLUGIN_FILE_CLAIM_RANGE,
	PLUGIN_FILE_CLAIM_FLAGS,
	PLUGIN_PROCESS_CLAIM_RANGE,
};

/* Logs a sentence about the misuse, at most once per instance. Returns -EINVAL. */
int plugin_misused(struct fusee_instance *, enum plugin_misuse);
#endif
