/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, loads and checks plugins. dlfcn.h is included nowhere else. */
#ifndef PLUGIN_PLUGIN_H
#define PLUGIN_PLUGIN_H

#include <stdint.h>

#include <fusee/plugin.h>

/* A loaded plugin and its one instance. Never unloaded; plugin_close() calls fini and frees ctx. */
struct plugin {
	const struct fusee_plugin *descriptor;
	char *path;
	void *ctx;
	struct fusee_instance *instance;
};

struct plugin_set {
	struct plugin **plugins; /* unwinders by `order`, then by name */
	uint32_t n;
};

/* The folder that plugins are looked for in: $FUSEE_PLUGIN_PATH (refused with any capability or
 * setuid unless root's), else plugins/ beside the executable, else the installed one. Owned by the
 * caller; NULL: no memory. */
char *plugin_default_dir(void);

/* Loads one file; refuses a wrong magic or version, a truncated file, and, when privileged, one
 * that others can write (file or folder): *text is one malloc'ed sentence then. Options are set to
 * their defaults, init() is called. */
int plugin_open(const char *path, const struct fusee_host *, struct plugin **ret, char **text);
void plugin_close(struct plugin *);
/* Every *.so of dir of this kind. A refused one is logged as a warning and left out; 0 or -errno
 * (no such dir). */
int plugin_load_dir(const char *dir, uint32_t kind, const struct fusee_host *,
		    struct plugin_set *ret);
void plugin_set_close(struct plugin_set *);

/* host->fail keeps a text by instance: the last one, "" none. */
const char *plugin_error(const struct fusee_instance *);
struct fusee_instance *plugin_instance(const struct plugin *);
/* The parts of a host table that all kinds share (log, fail). */
extern const struct fusee_host plugin_host_base;
#endif
