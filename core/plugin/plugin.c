/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/metrics.h"
#include "plugin/check.h"
#include "plugin/options.h"

/* ---- functions of the host ---- */

void plugin_host_log(struct fusee_instance *in, int level, const char *text)
{
	log_at(level, "%s: %s", in->name, text);
}

int plugin_host_fail(struct fusee_instance *in, int err, const char *text)
{
	free(in->error);
	in->error = strdup(text);
	return err;
}

int plugin_misused(struct fusee_instance *in, enum plugin_misuse what)
{
	static const char *const sentences[] = {
		[PLUGIN_FILE_CLAIM_RANGE] = "file_claim: the range is empty: its lo must be below "
					    "its hi",
		[PLUGIN_FILE_CLAIM_FLAGS] = "file_claim: flags must be FUSEE_CLAIM_STEP, with "
					    "FUSEE_CLAIM_INTERPRETER and "
					    "FUSEE_CLAIM_REGISTERS or without",
		[PLUGIN_PROCESS_CLAIM_RANGE] = "process_claim: the range is empty: its lo must be "
					       "below its hi",
	};

	if (fusee_fails(what < sizeof(sentences) / sizeof(*sentences)))
		return -EINVAL;
	if (!(in->misused >> what & 1))
		plugin_host_log(in, LOG_WARNING, sentences[what]);
	in->misused |= 1u << what;
	return -EINVAL;
}

#define MAX_LABELS 8u

void plugin_host_count(struct fusee_instance *in, const char *metric,
		       const struct fusee_label *labels, uint32_t n, uint64_t add)
{
	char name[96], texts[MAX_LABELS * 2][128];
	const char *pairs[MAX_LABELS * 2 + 2] = {"instance", in->name};
	struct metric_labels all = {pairs, 2};

	for (uint32_t i = 0; i < n && i < MAX_LABELS; i++) {
		snprintf(texts[2 * i], sizeof(texts[0]), "%.*s", (int)labels[i].key.len,
			 labels[i].key.p);
		snprintf(texts[2 * i + 1], sizeof(texts[0]), "%.*s", (int)labels[i].str.len,
			 labels[i].str.p ? labels[i].str.p : "");
		pairs[all.n++] = texts[2 * i];
		pairs[all.n++] = texts[2 * i + 1];
	}
	snprintf(name, sizeof(name), "plugin_%s_total", metric);
	metric_add(name, "Counted by a plugin.", &all, add);
}

int plugin_host_read_secret(struct fusee_instance *in, const char *path, char *buf, uint32_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), r = fd < 0 ? -errno : 0;
	struct buf all = {0};
	struct stat st;

	/* before it is read: what is written meanwhile is a change */
	secrets_note(&in->secrets, path, (fd < 0 ? stat(path, &st) : fstat(fd, &st)) ? NULL : &st);
	if (r)
		return r;
	r = buf_read_fd(&all, fd, cap ? cap - 1 : 0);
	while (!r && all.len && (all.p[all.len - 1] == '\n' || all.p[all.len - 1] == '\r'))
		all.len--;
	if (!r) {
		memcpy(buf, all.p ? all.p : "", all.len);
		buf[all.len] = '\0';
		r = (int)all.len;
	}
	if (all.p)
		explicit_bzero(all.p, all.cap);
	buf_fini(&all);
	close(fd);
	return r;
}

const struct fusee_host plugin_host_base = {
	.size = sizeof(plugin_host_base),
	.abi_minor = FUSEE_ABI_MINOR,
	.log = plugin_host_log,
	.fail = plugin_host_fail,
	.count = plugin_host_count,
	.read_secret = plugin_host_read_secret,
};

const char *plugin_kind_name(uint32_t kind)
{
	switch (kind) {
	case FUSEE_SINK:
		return "sink";
	case FUSEE_DISCOVERY:
		return "discover";
	case FUSEE_UNWINDER:
		return "unwind";
	default:
		return NULL;
	}
}

/* ---- the default folder ---- */

static char *beside_or_installed(void)
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

	return path && *path ? strdup(path) : beside_or_installed();
}

/* ---- loading ---- */

static int refuse(char **text, const char *format, const char *path, const char *what)
{
	if (asprintf(text, format, path, what) < 0)
		*text = NULL;
	return -EPROTO;
}

/* The exported descriptor; NULL: none. *size: its size in the symbol table. */
static const struct fusee_plugin *find_descriptor(void *so, size_t *size)
{
	const struct fusee_plugin *d = dlsym(so, "fusee_plugin");
	const ElfW(Sym) *sym = NULL;
	Dl_info info;

	*size = d && dladdr1(d, &info, (void **)&sym, RTLD_DL_SYMENT) && sym ? sym->st_size : 0;
	return d;
}

/* Up to the last field that version 0.5 began with. A plugin that was built with a later header of
 * the same version may have more fields than this core knows, and is refused. */
#define LEAST(T, field) (offsetof(struct T, field) + sizeof(((struct T *)0)->field))
#define DESCRIPTOR_LEAST LEAST(fusee_plugin, ops)
#define UNWINDER_LEAST LEAST(fusee_unwinder_ops, detach)
#define SINK_LEAST LEAST(fusee_sink_ops, cancel)
#define DISCOVERY_LEAST LEAST(fusee_discovery_ops, process)

static bool is_size_of(uint32_t size, size_t least, size_t most)
{
	return size >= least && size <= most;
}

static bool has_secret(const struct fusee_plugin *d)
{
	for (uint32_t i = 0; i < d->options.n; i++)
		if (FUSEE_AT(struct fusee_option, d->options, i)->type == FUSEE_SECRET)
			return true;
	return false;
}

static const char *wrong_ops(const struct fusee_plugin *d)
{
	const struct fusee_unwinder_ops *unwinder = d->ops;
	const struct fusee_sink_ops *sink = d->ops;
	const struct fusee_discovery_ops *discovery = d->ops;

	switch (d->kind) {
	case FUSEE_UNWINDER:
		if (!is_size_of(unwinder->size, UNWINDER_LEAST, sizeof(*unwinder)))
			return "has unwinder ops of another size: rebuild it";
		if (has_secret(d))
			return "has a secret option, which an unwinder cannot have";
		if (unwinder->native_step && !unwinder->reasons)
			return "has a step but no reasons";
		return NULL;
	case FUSEE_SINK:
		if (!is_size_of(sink->size, SINK_LEAST, sizeof(*sink)))
			return "has sink ops of another size: rebuild it";
		if (FUSEE_HAS(sink, read) && !sink->list != !sink->read)
			return "has one of list() and read(): both, or none";
		return sink->consume ? NULL : "has no consume()";
	case FUSEE_DISCOVERY:
		if (!is_size_of(discovery->size, DISCOVERY_LEAST, sizeof(*discovery)))
			return "has discovery ops of another size: rebuild it";
		if (discovery->flags & FUSEE_DISCOVERY_PROCESSES && !discovery->process)
			return "sets FUSEE_DISCOVERY_PROCESSES but has no process()";
		return NULL;
	default:
		return "is of a kind that this fusee does not know";
	}
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
	if (size < d->size || !is_size_of(d->size, DESCRIPTOR_LEAST, sizeof(*d)) || !d->name ||
	    !d->ops)
		return refuse(
			text, "plugin '%s' %s", path,
			"has a descriptor of another size or without name and ops: rebuild it");
	wrong = wrong_ops(d);
	if (wrong)
		return refuse(text, "plugin '%s' %s", path, wrong);
	r = options_check(&d->options, d->ctx_size, &options);
	if (r && options)
		r = refuse(text, "plugin '%s' %s", path, options);
	free(options);
	return r;
}

/* Whether an error of dlopen() is about memory. */
static bool is_no_memory(const char *error)
{
	return !error || strstr(error, strerror(ENOMEM)) || strstr(error, "out of memory");
}

int plugin_load(const char *path, struct plugin **ret, char **text)
{
	struct plugin *p = calloc(1, sizeof(*p));
	const char *error;
	size_t size;
	void *so;
	int r = -ENOMEM;

	*text = NULL;
	if (!p)
		return r;
	/* resolved once, so that the checked file is the loaded file even if a link changes */
	p->path = realpath(path, NULL);
	if (!p->path && errno != ENOMEM)
		p->path = strdup(path);
	if (!p->path)
		goto fail;
	path = p->path;
	r = check_file(path, text);
	if (r)
		goto fail;
	so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!so) {
		error = dlerror();
		r = is_no_memory(error)
			    ? -ENOMEM
			    : refuse(text, "plugin '%s' cannot be loaded: %s", path, error);
		goto fail;
	}
	p->descriptor = find_descriptor(so, &size);
	r = check_descriptor(path, p->descriptor, size, text);
	if (r)
		goto fail;
	*ret = p;
	return 0;
fail:
	plugin_free(p);
	return r;
}

void plugin_free(struct plugin *p)
{
	if (!p)
		return;
	free(p->path);
	free(p);
}

/* ---- folders ---- */

static int by_kind_and_name(const void *a, const void *b)
{
	const struct fusee_plugin *x = (*(struct plugin *const *)a)->descriptor;
	const struct fusee_plugin *y = (*(struct plugin *const *)b)->descriptor;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name, y->name);
}

const struct plugin *plugin_folder_find(const struct plugin_folder *f, uint32_t kind,
					const char *name)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->plugins[i]->descriptor->kind == kind &&
		    !strcmp(f->plugins[i]->descriptor->name, name))
			return f->plugins[i];
	return NULL;
}

/* Appends a sentence, which it owns from then on. */
static int note_refused(struct plugin_folder *f, char *text)
{
	char **all = text ? realloc(f->refused, (f->nrefused + 1) * sizeof(char *)) : NULL;

	if (!all) {
		free(text);
		return -ENOMEM;
	}
	f->refused = all;
	f->refused[f->nrefused++] = text;
	return 0;
}

/* Adds the plugin, which it owns from then on. The same plugin by another path is dropped, another
 * plugin of its kind and name is refused. */
static int add_plugin(struct plugin_folder *f, struct plugin *p)
{
	const struct plugin *same = plugin_folder_find(f, p->descriptor->kind, p->descriptor->name);
	struct plugin **all;
	char *text = NULL;
	int r = 0;

	if (same) {
		if (same->descriptor != p->descriptor) {
			refuse(&text, "plugin '%s' is ignored: '%s' has the same name", p->path,
			       same->path);
			r = note_refused(f, text);
		}
		goto out;
	}
	all = realloc(f->plugins, (f->n + 1) * sizeof(*all));
	if (all) {
		f->plugins = all;
		f->plugins[f->n++] = p;
		return 0;
	}
	r = -ENOMEM;
out:
	plugin_free(p);
	return r;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The paths of all *.so of a folder, sorted. */
static int list_folder(const char *dir, char ***ret, uint32_t *n)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char **all = NULL;
	int r = d ? 0 : -errno;

	*n = 0;
	while (d && !r && (e = readdir(d))) {
		size_t len = strlen(e->d_name);
		char **more;

		if (len < 4 || strcmp(e->d_name + len - 3, ".so"))
			continue;
		more = realloc(all, (*n + 1) * sizeof(char *));
		if (more) {
			all = more;
			if (asprintf(&all[*n], "%s/%s", dir, e->d_name) >= 0)
				(*n)++;
			else
				r = -ENOMEM;
		} else {
			r = -ENOMEM;
		}
	}
	if (d)
		closedir(d);
	if (*n)
		qsort(all, *n, sizeof(*all), by_text);
	*ret = all;
	return r;
}

/* kind not 0: files whose descriptor has another kind are skipped. */
static int open_folder(const char *dir, uint32_t kind, struct plugin_folder *f)
{
	char **paths, *text;
	uint32_t n;
	int r = list_folder(dir, &paths, &n);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t found = !r && kind ? check_kind(paths[i]) : 0;
		struct plugin *p;

		if (!r && (!found || found == kind)) {
			r = plugin_load(paths[i], &p, &text);
			if (!r)
				r = add_plugin(f, p);
			else if (r != -ENOMEM)
				r = note_refused(f, text);
			else
				free(text);
		}
		free(paths[i]);
	}
	free(paths);
	return r;
}

static int open_folders(const char *dirs, uint32_t kind, struct plugin_folder *f)
{
	char *copy = strdup(dirs), *rest = copy, *dir;
	int r = copy ? 0 : -ENOMEM;

	*f = (struct plugin_folder){0};
	while (!r && (dir = strsep(&rest, ":")))
		if (*dir)
			r = open_folder(dir, kind, f);
	free(copy);
	if (r)
		plugin_folder_close(f);
	else if (f->n)
		qsort(f->plugins, f->n, sizeof(*f->plugins), by_kind_and_name);
	return r;
}

int plugin_folder_open(const char *dirs, struct plugin_folder *f)
{
	return open_folders(dirs, 0, f);
}

void plugin_folder_close(struct plugin_folder *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		plugin_free(f->plugins[i]);
	for (uint32_t i = 0; i < f->nrefused; i++)
		free(f->refused[i]);
	free(f->plugins);
	free(f->refused);
	*f = (struct plugin_folder){0};
}

/* ---- instances of unwinders ---- */

static int order_of(const struct fusee_instance *in)
{
	return ((const struct fusee_unwinder_ops *)in->descriptor->ops)->order;
}

static int by_order(const void *a, const void *b)
{
	const struct fusee_instance *x = *(struct fusee_instance *const *)a;
	const struct fusee_instance *y = *(struct fusee_instance *const *)b;

	if (order_of(x) != order_of(y))
		return order_of(x) < order_of(y) ? -1 : 1;
	return strcmp(x->descriptor->name, y->descriptor->name);
}

static bool is_enabled_unwinder(const struct plugin *p, const struct unwinder_choice *choice)
{
	const char *const *without = choice ? choice->without : NULL;

	for (; without && *without; without++)
		if (!strcmp(*without, p->descriptor->name))
			return false;
	return p->descriptor->kind == FUSEE_UNWINDER;
}

/* The instance of this name with the options that are chosen for it. */
static struct instance_options options_of(const char *name, const struct fusee_plugin *d,
					  const struct unwinder_choice *choice)
{
	struct instance_options o = {.name = name, .where = ""};

	for (uint32_t i = 0; choice && i < choice->n; i++) {
		const struct unwinder_options *u = &choice->options[i];

		if (strcmp(u->name, d->name) != 0)
			continue;
		o.where = u->where;
		o.options = u->options;
		o.n = u->n;
	}
	return o;
}

static int add_unwinder(struct plugin_set *set, const struct plugin *p,
			const struct fusee_host *host, const struct unwinder_choice *choice)
{
	struct fusee_instance **all;
	struct instance_options o;
	char name[128], *text;
	int r;

	snprintf(name, sizeof(name), "unwind.%s", p->descriptor->name);
	o = options_of(name, p->descriptor, choice);
	all = realloc(set->instances, (set->n + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	set->instances = all;
	r = instance_new(&all[set->n], p->descriptor, host, &o, &text);
	if (!r)
		set->n++;
	else if (r != -ENOMEM)
		log_warning("%s", text ? text : strerror(-r));
	free(text);
	return r == -ENOMEM ? r : 0;
}

int plugin_set_open(const char *dir, const struct fusee_host *host,
		    const struct unwinder_choice *choice, struct plugin_set *set)
{
	struct plugin_folder f;
	int r = open_folders(dir, FUSEE_UNWINDER, &f);

	*set = (struct plugin_set){0};
	for (uint32_t i = 0; i < f.nrefused; i++)
		log_warning("%s", f.refused[i]);
	for (uint32_t i = 0; !r && i < f.n; i++)
		if (is_enabled_unwinder(f.plugins[i], choice))
			r = add_unwinder(set, f.plugins[i], host, choice);
	plugin_folder_close(&f);
	if (r)
		plugin_set_close(set);
	else if (set->n)
		qsort(set->instances, set->n, sizeof(*set->instances), by_order);
	return r;
}

void plugin_set_close(struct plugin_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		instance_free(set->instances[i]);
	free(set->instances);
	*set = (struct plugin_set){0};
}

struct plugin_stamp plugin_stamp(const struct fusee_plugin *d)
{
	struct plugin_stamp stamp = {0};
	struct stat st;
	Dl_info info;

	if (dladdr(d, &info) && !stat(info.dli_fname, &st))
		stamp = (struct plugin_stamp){.dev = st.st_dev,
					      .ino = st.st_ino,
					      .size = (uint64_t)st.st_size,
					      .mtime_ns = st.st_mtim.tv_sec * 1000000000ll +
							  st.st_mtim.tv_nsec};
	return stamp;
}
