/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of plugins: lists the plugins; loads a plugin when it is first looked up.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plugin/internal/check.h"
#include "plugin/plugin.h"

uint32_t plugin_kind(const struct plugin *p)
{
	return p->descriptor ? p->descriptor->kind : p->kind;
}

const char *plugin_name(const struct plugin *p)
{
	return p->descriptor ? p->descriptor->name : p->name;
}

static int by_kind_and_name(const void *a, const void *b)
{
	const struct plugin *x = *(struct plugin *const *)a, *y = *(struct plugin *const *)b;

	if (plugin_kind(x) != plugin_kind(y))
		return plugin_kind(x) < plugin_kind(y) ? -1 : 1;
	return strcmp(plugin_name(x), plugin_name(y));
}

/* ---- loading ---- */

/* Whether the file is still the plugin that it was when the folder was read. */
static int check_unchanged(const struct plugin *p, const struct plugin *loaded, char **text)
{
	if (plugin_kind(loaded) == p->kind && !strcmp(plugin_name(loaded), p->name))
		return 0;
	if (asprintf(text, "plugin '%s' was another when fusee started: restart fusee", p->path) <
	    0)
		*text = NULL;
	return -EPROTO;
}

/* 0; -ENOMEM, after which a retry may succeed; -errno with a sentence in p->refused. */
static int load(struct plugin *p)
{
	struct plugin *loaded;
	char *text;
	int r;

	if (p->descriptor)
		return 0;
	if (p->refused)
		return -EPROTO;
	r = plugin_load(p->path, &loaded, &text);
	if (!r) {
		r = check_unchanged(p, loaded, &text);
		if (!r)
			p->descriptor = loaded->descriptor;
		plugin_free(loaded);
	}
	if (r && r != -ENOMEM)
		p->refused = text;
	else
		free(text);
	return r && !p->refused ? -ENOMEM : r;
}

static struct plugin *look_up(const struct plugin_folder *f, uint32_t kind, const char *name)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (plugin_kind(f->plugins[i]) == kind && !strcmp(plugin_name(f->plugins[i]), name))
			return f->plugins[i];
	return NULL;
}

const struct plugin *plugin_folder_find(const struct plugin_folder *f, uint32_t kind,
					const char *name)
{
	struct plugin *p = look_up(f, kind, name);

	return p && !load(p) ? p : NULL;
}

const char *plugin_folder_refusal(const struct plugin_folder *f, uint32_t kind, const char *name)
{
	const struct plugin *p = look_up(f, kind, name);
	char file[256];

	if (p)
		return p->refused ? p->refused : p->descriptor ? NULL : "there is no memory for it";
	snprintf(file, sizeof(file), "/%s.so'", name);
	for (uint32_t i = 0; i < f->nrefused; i++)
		if (strstr(f->refused[i], file))
			return f->refused[i];
	return NULL;
}

/* Appends a sentence and takes it over. */
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

int plugin_folder_load(struct plugin_folder *f)
{
	uint32_t n = 0;
	int r = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		struct plugin *p = f->plugins[i];
		int err = r ? 0 : load(p);

		if (!err || err == -ENOMEM) {
			f->plugins[n++] = p;
			r = r ? r : err;
			continue;
		}
		r = note_refused(f, p->refused);
		p->refused = NULL;
		plugin_free(p);
	}
	f->n = n;
	return r;
}

/* ---- reading a folder ---- */

/* Whether two names lead to one file. */
static bool is_same_file(const struct plugin *a, const struct plugin *b)
{
	struct stat x, y;

	return !stat(a->path, &x) && !stat(b->path, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Adds the plugin and takes it over. The same plugin by another path is dropped, another plugin of
 * its kind and name is refused. */
static int add_plugin(struct plugin_folder *f, struct plugin *p)
{
	const struct plugin *same = look_up(f, plugin_kind(p), plugin_name(p));
	struct plugin **all;
	char *text = NULL;
	int r = 0;

	if (same) {
		if (!is_same_file(same, p)) {
			if (asprintf(&text, "plugin '%s' is ignored: '%s' has the same name",
				     p->path, same->path) < 0)
				text = NULL;
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

/* Makes a plugin that is loaded when it is first looked up. */
static int defer(const char *path, const struct check_identity *id, struct plugin **ret,
		 char **text)
{
	struct plugin *p = calloc(1, sizeof(*p));
	int r = p ? check_file(path, text) : -ENOMEM;

	if (!r) {
		p->kind = id->kind;
		p->name = strdup(id->name);
		p->path = realpath(path, NULL);
		r = p->name && p->path ? 0 : -ENOMEM;
	}
	if (r)
		plugin_free(p);
	else
		*ret = p;
	return r;
}

/* A file whose kind and name cannot be read without loading it is loaded at once, so that a wrong
 * file is refused, with the reason, when the folder is read. */
static int add_file(struct plugin_folder *f, uint32_t kind, const char *path)
{
	struct check_identity id;
	struct plugin *p;
	char *text = NULL;
	int r;

	check_identity(path, &id);
	if (kind && id.kind && id.kind != kind)
		return 0;
	r = id.kind && plugin_kind_name(id.kind) && *id.name ? defer(path, &id, &p, &text)
							     : plugin_load(path, &p, &text);
	if (!r)
		return add_plugin(f, p);
	if (r != -ENOMEM)
		return note_refused(f, text);
	free(text);
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

static int read_folder(const char *dir, uint32_t kind, struct plugin_folder *f)
{
	char **paths;
	uint32_t n;
	int r = list_folder(dir, &paths, &n);

	for (uint32_t i = 0; i < n; i++) {
		if (!r)
			r = add_file(f, kind, paths[i]);
		free(paths[i]);
	}
	free(paths);
	return r;
}

int plugin_folder_open(const char *dirs, uint32_t kind, struct plugin_folder *f)
{
	char *copy = strdup(dirs), *rest = copy, *dir;
	int r = copy ? 0 : -ENOMEM;

	*f = (struct plugin_folder){0};
	while (!r && (dir = strsep(&rest, ":")))
		if (*dir)
			r = read_folder(dir, kind, f);
	free(copy);
	if (r)
		plugin_folder_close(f);
	else if (f->n)
		qsort(f->plugins, f->n, sizeof(*f->plugins), by_kind_and_name);
	return r;
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
