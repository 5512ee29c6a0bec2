/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define MAX_BYTES (1ull << 30)

static int add(struct ui_files *f, char *path)
{
	struct ui_file *more = path ? reallocarray(f->files, f->n + (size_t)1, sizeof(*more))
				    : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!more) {
		free(path);
		return -ENOMEM;
	}
	f->files = more;
	f->files[f->n++] = (struct ui_file){
		.path = path, .name = slash && slash[1] ? slash + 1 : path, .bytes = -1};
	return 0;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), len = strlen(suffix);

	return n > len && !strcmp(name + n - len, suffix);
}

static bool is_profile(const char *name)
{
	static const char *const suffixes[] = {
		".pb.gz", ".pprof", ".pb", ".perf", ".folded", ".collapsed", ".speedscope.json"};

	for (size_t i = 0; *name != '.' && i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (has_suffix(name, suffixes[i]))
			return true;
	return false;
}

static bool is_listed(const struct ui_files *f, const char *name)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (!strcmp(f->files[i].name, name))
			return true;
	return false;
}

static char *join(const char *folder, const char *name)
{
	struct buf b = {0};

	buf_printf(&b, "%s%s%s", folder, has_suffix(folder, "/") ? "" : "/", name);
	buf_add(&b, "", 1);
	if (!b.error)
		return b.p;
	buf_fini(&b);
	return NULL;
}

static int list_folder(struct ui_files *f)
{
	DIR *d = opendir(f->folder);
	struct dirent *e;
	int r = 0;

	if (!d)
		return -errno;
	while (!r && f->n < UI_MAX_FILES && (e = readdir(d)))
		if (is_profile(e->d_name) && !is_listed(f, e->d_name))
			r = add(f, join(f->folder, e->d_name));
	closedir(d);
	return r;
}

int ui_files_look(struct ui_files *f)
{
	int r = f->folder ? list_folder(f) : 0;
	struct stat st;

	for (uint32_t i = 0; i < f->n; i++) {
		struct ui_file *file = &f->files[i];

		if (file->kept)
			continue;
		file->bytes = -1;
		if (stat(file->path, &st) || !S_ISREG(st.st_mode))
			continue;
		file->bytes = st.st_size;
		file->time_ns = st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec;
	}
	return r == -ENOMEM ? r : 0; /* a folder that was removed has no files */
}

/* Reads a profile from standard input; it is never unloaded. Returns an exit code. */
static int add_input(struct ui_files *f)
{
	struct buf bytes = {0};
	const char *text = NULL;
	struct ui_file *file;
	int r = add(f, strdup("standard input"));

	if (!r)
		r = buf_read_fd(&bytes, STDIN_FILENO, MAX_BYTES);
	file = r ? NULL : &f->files[f->n - 1];
	if (!r)
		r = profile_read(bytes.p, bytes.len, &file->profile, &text);
	if (r) {
		log_error("cannot read standard input%s: %s", text ? " as a profile" : "",
			  text ? text : strerror(-r));
	} else {
		file->kept = true;
		file->bytes = (int64_t)bytes.len;
		file->time_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	}
	buf_fini(&bytes);
	return !r ? 0 : text ? EX_DATAERR : EX_NOINPUT;
}

static int open_failed(const char *path, int err)
{
	log_error("cannot open '%s': %s", path, strerror(err));
	return EX_NOINPUT;
}

int ui_files_open(struct ui_files *f, char *const *paths, uint32_t n)
{
	struct stat st;
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i++) {
		if (!strcmp(paths[i], "-")) {
			r = add_input(f);
			if (r)
				return r;
			continue;
		}
		if (stat(paths[i], &st))
			return open_failed(paths[i], errno);
		if (S_ISDIR(st.st_mode)) {
			if (n > 1) {
				log_error("'%s' is a folder: name one folder, or files", paths[i]);
				return EX_USAGE;
			}
			f->folder = strdup(paths[i]);
			r = f->folder ? list_folder(f) : -ENOMEM;
		} else if (!S_ISREG(st.st_mode)) {
			log_error("'%s' is neither a file nor a folder", paths[i]);
			return EX_NOINPUT;
		} else {
			r = add(f, strdup(paths[i]));
		}
	}
	if (!r)
		r = ui_files_look(f);
	return r ? open_failed(n ? paths[0] : "", -r) : 0;
}

static void unload(struct ui_files *f, struct ui_file *file)
{
	f->changes++;
	profile_file_free(file->profile);
	file->profile = NULL;
}

/* Unloads the profile that was used least recently, if as many are loaded as may be. */
static void unload_oldest(struct ui_files *f)
{
	struct ui_file *oldest = NULL;
	uint32_t loaded = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		if (!f->files[i].profile || f->files[i].kept)
			continue;
		loaded++;
		if (!oldest || f->files[i].used < oldest->used)
			oldest = &f->files[i];
	}
	if (loaded >= UI_MAX_LOADED)
		unload(f, oldest);
}

/* Opens without waiting: the file may have become a pipe since it was listed. */
static int read_file(struct ui_file *file, struct buf *bytes)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;
	struct stat st;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (!r)
		r = buf_read_fd(bytes, fd, MAX_BYTES);
	close(fd);
	file->loaded_time = st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec;
	file->loaded_bytes = st.st_size;
	return r;
}

/* *text: a static sentence about the error, or NULL. */
static int read_profile(struct ui_file *file, const char **text)
{
	struct buf bytes = {0};
	int r = read_file(file, &bytes);

	if (!r)
		r = profile_read(bytes.p, bytes.len, &file->profile, text);
	buf_fini(&bytes);
	return r;
}

/* ---- ahead ---- */

static void release(struct ui_ahead *a)
{
	if (!atomic_exchange(&a->is_released, true))
		return;
	profile_file_free(a->file.profile);
	free(a->file.path);
	free(a);
}

static void *read_ahead(void *arg)
{
	struct ui_ahead *a = arg;
	const char *text;

	read_profile(&a->file, &text); /* an error comes again when the profile is needed */
	release(a);
	return NULL;
}

void ui_files_ahead(struct ui_files *f)
{
	struct ui_ahead *a;

	if (f->n != 1 || f->folder || f->files[0].profile || f->ahead)
		return;
	a = calloc(1, sizeof(*a));
	if (!a)
		return;
	a->file.path = strdup(f->files[0].path);
	if (a->file.path && !pthread_create(&a->thread, NULL, read_ahead, a)) {
		f->ahead = a;
		return;
	}
	free(a->file.path); /* it is read when it is needed */
	free(a);
}

/* Waits until the profile is read. */
static void take_ahead(struct ui_files *f)
{
	struct ui_ahead *a = f->ahead;
	struct ui_file *file = f->files;

	if (!a)
		return;
	pthread_join(a->thread, NULL);
	file->profile = a->file.profile;
	file->loaded_time = a->file.loaded_time;
	file->loaded_bytes = a->file.loaded_bytes;
	f->changes++;
	f->ahead = NULL;
	a->file.profile = NULL;
	release(a);
}

/* Does not wait: a large profile takes seconds to read. */
static void abandon_ahead(struct ui_files *f)
{
	if (!f->ahead)
		return;
	pthread_detach(f->ahead->thread);
	release(f->ahead);
}

/* ---- in memory ---- */

static int load(struct ui_files *f, struct ui_file *file, struct buf *error)
{
	const char *text = NULL;
	int r;

	unload_oldest(f);
	f->changes++;
	r = read_profile(file, &text);
	if (r)
		buf_printf(error, "cannot read '%s'%s: %s", file->name, text ? " as a profile" : "",
			   text ? text : strerror(-r));
	return r == -ENOENT ? -ESTALE : r;
}

int ui_files_profile(struct ui_files *f, uint32_t number, const struct fusee_profile **ret,
		     struct buf *error)
{
	struct ui_file *file = number < f->n ? &f->files[number] : NULL;
	struct stat st;
	int r = 0;

	if (!file)
		return -ENOENT;
	take_ahead(f);
	if (file->profile && !file->kept && !stat(file->path, &st) &&
	    (st.st_size != file->loaded_bytes ||
	     st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec != file->loaded_time))
		unload(f, file);
	if (!file->profile)
		r = load(f, file, error);
	if (r)
		return r;
	file->used = ++f->uses;
	*ret = profile_of(file->profile);
	return 0;
}

void ui_files_close(struct ui_files *f)
{
	abandon_ahead(f);
	for (uint32_t i = 0; i < f->n; i++) {
		profile_file_free(f->files[i].profile);
		free(f->files[i].path);
	}
	free(f->files);
	free(f->folder);
	*f = (struct ui_files){0};
}
