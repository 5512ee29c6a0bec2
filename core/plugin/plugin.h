/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, loads and checks plugins. dlfcn.h is included nowhere else. Instances: plugin/instance.h.
 */
#ifndef PLUGIN_PLUGIN_H
#define PLUGIN_PLUGIN_H

#include <stdint.h>

#include <fusee/plugin.h>

#include "plugin/instance.h"

/* A loaded plugin. Never unloaded: freeing it leaves the code where it is. */
struct plugin {
	const struct fusee_plugin *descriptor;
	char *path;
};

/* One folder's plugins, of all kinds, by kind and name. */
struct plugin_folder {
	struct plugin **plugins;
	uint32_t n;
	char **refused; /* sentences: "plugin '/x/y.so' was built for plugin ABI 0.1, .." */
	uint32_t nrefused;
};

/* The folder that plugins are looked for in: $FUSEE_PLUGIN_PATH (several, with ':' between; not
 * with any capability or setuid unless root's), else plugins/ beside the executable, else the
 * installed one. Owned by the caller; NULL: no memory. */
char *plugin_default_dir(void);

/* Loads one file; refuses a wrong magic or version, a truncated file, and, when privileged, one
 * that others can write (file or folder): *text is one malloc'ed sentence then; -ENOMEM: maybe
 * none. */
int plugin_load(const char *path, struct plugin **ret, char **text);
void plugin_free(struct plugin *);
/* Every *.so of the folders dir ("a:b"). What is refused is kept as a sentence, and logged by
 * whoever opened the folder. 0, -ENOENT (no such dir), -ENOMEM. */
int plugin_folder_open(const char *dir, struct plugin_folder *ret);
void plugin_folder_close(struct plugin_folder *);
/* NULL: none of this kind and name. */
const struct plugin *plugin_folder_find(const struct plugin_folder *, uint32_t kind,
					const char *name);
/* "sink", "discover", "unwind": the namespace of a kind in scripts; NULL: unknown kind. */
const char *plugin_kind_name(uint32_t kind);

/* Unwinders at work, by `order`, then by name. */
struct plugin_set {
	struct fusee_instance **instances;
	uint32_t n;
};

/* An instance of each unwinder of dir with default options, those named in `without` left out (ends
 * with NULL; NULL: none). A refused one is logged as a warning and left out. 0, -ENOENT, -ENOMEM.
 */
int plugin_set_open(const char *dir, const struct fusee_host *, const char *const *without,
		    struct plugin_set *ret);
void plugin_set_close(struct plugin_set *);

/* The parts of a host table that all kinds share. */
void plugin_host_log(struct fusee_instance *, int level, const char *text);
int plugin_host_fail(struct fusee_instance *, int err, const char *text);

/* What -EINVAL alone would not tell a plugin's author. */
enum plugin_misuse {
	PLUGIN_FILE_CLAIM_RANGE,
	PLUGIN_FILE_CLAIM_FLAGS,
	PLUGIN_FILE_CLAIM_ARG,
	PLUGIN_PROCESS_CLAIM_RANGE,
};

/* One sentence in the log, once for each in an instance's life. -EINVAL. */
int plugin_misused(struct fusee_instance *, enum plugin_misuse);
void plugin_host_count(struct fusee_instance *, const char *metric,
		       const struct fusee_label *labels, uint32_t n, uint64_t add);
int plugin_host_read_secret(struct fusee_instance *, const char *path, char *buf, uint32_t cap);
extern const struct fusee_host plugin_host_base; /* these four and nothing else */
#endif
