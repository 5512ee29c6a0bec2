/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "plugin/check.h"
#include "plugin/options.h"

struct fusee_instance {
	const char *name;
	char *error;
	bool begun; /* init was called: fini is owed */
};

/* ---- the host's common part ---- */

static void host_log(struct fusee_instance *in, int level, const char *text)
{
	log_at(level, "%s: %s", in->name, text);
}

static int host_fail(struct fusee_instance *in, int err, const char *text)
{
	free(in->error);
	in->error = strdup(text);
	return err;
}

const struct fusee_host plugin_host_base = {
	.size = sizeof(plugin_host_base),
	.abi_minor = FUSEE_ABI_MINOR,
	.log = host_log,
	.fail = host_fail,
};

const char *plugin_error(const struct fusee_instance *in)
{
	return in && in->error ? in->error : "";
}

struct fusee_instance *plugin_instance(const struct plugin *p)
{
	return p->instance;
}

/* ---- where ---- */

static char *installed_or_beside(void)
{
	char exe[PATH_MAX], *dir = NULL;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	struct stat st;

	if (n > 0) {
		exe[n] = '\0';
		*strrchr(exe, '/') = '\0';
		if (asprintf(&dir, "%s/plugins", exe) < 0)
			return NULL;
		if (!stat(dir, &st) && S_ISDIR(st.st_mode))
			return dir;
		free(dir);
	}
	return strdup(FUSEE_LIBDIR "/fusee/plugins");
}

char *plugin_default_dir(void)
{
	const char *path = secure_getenv("FUSEE_PLUGIN_PATH");

	return path && *path ? strdup(path) : installed_or_beside();
}

/* ---- loading ---- */

static int refuse(char **text, const char *format, const char *path, const char *what)
{
	if (asprintf(text, format, path, what) < 0)
		*text = NULL;
	return -EPROTO;
}

/* The descriptor that the loaded object exports; NULL: none. *size: bytes that it really has. */
static const struct fusee_plugin *find_descriptor(void *so, size_t *size)
{
	const struct fusee_plugin *d = dlsym(so, "fusee_plugin");
	const ElfW(Sym) *sym = NULL;
	Dl_info info;

	*size = d && dladdr1(d, &info, (void **)&sym, RTLD_DL_SYMENT) && sym ? sym->st_size : 0;
	return d;
}

static const char *wrong_ops(const struct fusee_plugin *d)
{
	const struct fusee_unwinder_ops *ops = d->ops;

	if (d->kind != FUSEE_UNWINDER)
		return NULL;
	if (ops->size != sizeof(*ops))
		return "has unwinder ops of another size: rebuild it";
	if (ops->native_step && !ops->reasons)
		return "has a step but no reasons";
	return NULL;
}

static int check_descriptor(const char *path, const struct fusee_plugin *d, size_t size,
			    char **text)
{
	char versions[160], *options;
	const char *wrong;
	int r;

	if (!d)
		return refuse(text, "plugin '%s' %s", path,
			      "exports no fusee_plugin: is it a fusee plugin?");
	if (size < offsetof(struct fusee_plugin, kind) || d->magic != FUSEE_MAGIC)
		return refuse(text, "plugin '%s' %s", path,
			      "has a wrong magic number: is it a fusee plugin?");
	/* 0.x: exact match. */
	if (d->abi_major != FUSEE_ABI_MAJOR || d->abi_minor != FUSEE_ABI_MINOR) {
		snprintf(versions, sizeof(versions),
			 "was built for plugin ABI %u.%u, this fusee has %u.%u: rebuild it",
			 d->abi_major, d->abi_minor, FUSEE_ABI_MAJOR, FUSEE_ABI_MINOR);
		return refuse(text, "plugin '%s' %s", path, versions);
	}
	if (size < sizeof(*d) || d->size != sizeof(*d) || !d->name || !d->ops)
		return refuse(
			text, "plugin '%s' %s", path,
			"has a descriptor of another size or without name and ops: rebuild it");
	wrong = wrong_ops(d);
	if (wrong)
		return refuse(text, "plugin '%s' %s", path, wrong);
	r = options_check(&d->options, d->ctx_size, &options);
	if (r)
		r = refuse(text, "plugin '%s' %s", path, options ? options : strerror(ENOMEM));
	free(options);
	return r;
}

static int start(struct plugin *p, const struct fusee_host *host, char **text)
{
	const struct fusee_plugin *d = p->descriptor;
	char *option = NULL;
	const char *why;
	int r;

	p->instance = calloc(1, sizeof(*p->instance));
	p->ctx = calloc(1, d->ctx_size ? d->ctx_size : 1);
	if (!p->instance || !p->ctx)
		return -ENOMEM;
	p->instance->name = d->name;
	r = options_defaults(p->ctx, &d->options, &option);
	if (!r) {
		p->instance->begun = true;
		r = d->init ? d->init(p->ctx, p->instance, host) : 0;
	}
	why = option                       ? option
	      : *plugin_error(p->instance) ? plugin_error(p->instance)
					   : strerror(-r);
	if (r && asprintf(text, "plugin '%s': %s", p->path, why) < 0)
		*text = NULL;
	free(option);
	return r;
}

int plugin_open(const char *path, const struct fusee_host *host, struct plugin **ret, char **text)
{
	struct plugin *p = calloc(1, sizeof(*p));
	size_t size;
	void *so;
	int r = -ENOMEM;

	*text = NULL;
	if (!p)
		return r;
	/* what is looked at is what is loaded, wherever a link leads a moment later */
	p->path = realpath(path, NULL);
	if (!p->path)
		p->path = strdup(path);
	if (!p->path)
		goto fail;
	path = p->path;
	r = check_file(path, text);
	if (r)
		goto fail;
	so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!so) {
		r = refuse(text, "plugin '%s' cannot be loaded: %s", path, dlerror());
		goto fail;
	}
	p->descriptor = find_descriptor(so, &size);
	r = check_descriptor(path, p->descriptor, size, text);
	if (r) {
		p->descriptor = NULL;
		goto fail;
	}
	r = start(p, host, text);
	if (r)
		goto fail;
	*ret = p;
	return 0;
fail:
	plugin_close(p);
	return r;
}

void plugin_close(struct plugin *p)
{
	if (!p)
		return;
	if (p->instance && p->instance->begun && p->descriptor->fini)
		p->descriptor->fini(p->ctx);
	if (p->ctx)
		options_clear(p->ctx, &p->descriptor->options);
	if (p->instance)
		free(p->instance->error);
	free(p->instance);
	free(p->ctx);
	free(p->path);
	free(p);
}

/* ---- a folder of them ---- */

static int order_of(const struct plugin *p)
{
	if (p->descriptor->kind != FUSEE_UNWINDER)
		return 0;
	return ((const struct fusee_unwinder_ops *)p->descriptor->ops)->order;
}

static int by_order(const void *a, const void *b)
{
	const struct plugin *x = *(struct plugin *const *)a, *y = *(struct plugin *const *)b;

	if (order_of(x) != order_of(y))
		return order_of(x) < order_of(y) ? -1 : 1;
	return strcmp(x->descriptor->name, y->descriptor->name);
}

/* Takes the plugin over, or closes it: another kind, or the same one under a second name. */
static int keep(struct plugin_set *set, struct plugin *p, uint32_t kind)
{
	struct plugin **all;

	for (uint32_t i = 0; i < set->n; i++)
		if (set->plugins[i]->descriptor == p->descriptor)
			kind = 0;
	if (p->descriptor->kind != kind) {
		plugin_close(p);
		return 0;
	}
	all = realloc(set->plugins, (set->n + 1) * sizeof(*all));
	if (!all) {
		plugin_close(p);
		return -ENOMEM;
	}
	set->plugins = all;
	set->plugins[set->n++] = p;
	return 0;
}

int plugin_load_dir(const char *dir, uint32_t kind, const struct fusee_host *host,
		    struct plugin_set *set)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int r = 0;

	*set = (struct plugin_set){0};
	if (!d)
		return -errno;
	while (!r && (e = readdir(d))) {
		size_t len = strlen(e->d_name);
		char path[PATH_MAX], *text;
		struct plugin *p;

		if (len < 4 || strcmp(e->d_name + len - 3, ".so"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (plugin_open(path, host, &p, &text))
			log_warning("%s", text ? text : "no memory for a plugin");
		else
			r = keep(set, p, kind);
		free(text);
	}
	closedir(d);
	if (set->n)
		qsort(set->plugins, set->n, sizeof(*set->plugins), by_order);
	return r;
}

void plugin_set_close(struct plugin_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		plugin_close(set->plugins[i]);
	free(set->plugins);
	*set = (struct plugin_set){0};
}
