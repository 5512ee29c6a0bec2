/* SPDX-License-Identifier: Apache-2.0 */
#include "store/internal/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "pprof/pprof.h"
#include "store/internal/file_name.h"
#include "store/internal/label_sets.h"

#define SECOND 1000000000ull
#define MAX_FILE (1ull << 30) /* bytes; the decoder has limits of its own */

struct folder {
	struct store store;
	int fd;
};

/* Names of files, each malloc'ed. */
struct list {
	char **names;
	size_t n, cap;
};

/* One store_read(). */
struct reading {
	struct folder *folder;
	const struct store_request *request;
	const struct store_reader *reader;
	struct store_counts *counts;
	struct label_sets sets;
	struct buf bytes; /* of a file */
};

/* ---- the list ---- */

static void list_fini(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->names[i]);
	free(l->names);
}

static int list_add(struct list *l, const char *name)
{
	if (!ARRAY_ROOM(l->names, l->n, l->cap))
		return -ENOMEM;
	l->names[l->n] = strdup(name);
	return l->names[l->n++] ? 0 : -ENOMEM;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n > k && !strcmp(name + n - k, end);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In order of time, as names of sink.pprof begin with it. */
static int list_files(const struct folder *f, struct list *l)
{
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (!r && (errno = 0, e = readdir(dir))) {
		bool is_profile = ends_with(e->d_name, ".pb.gz") || ends_with(e->d_name, ".pprof");

		if (*e->d_name != '.' && is_profile)
			r = list_add(l, e->d_name);
	}
	if (!r && errno)
		r = -errno;
	closedir(dir);
	if (l->n)
		qsort(l->names, l->n, sizeof(*l->names), by_name);
	return r;
}

/* ---- a file ---- */

static void broken(struct reading *r, const char *name, const char *why)
{
	r->counts->broken++;
	r->reader->broken(r->reader->arg, name, why);
}

/* Reads a regular file. false: it cannot be read, which is counted. */
static bool read_bytes(struct reading *r, const char *name)
{
	/* a named pipe would wait for a writer */
	int fd = openat(r->folder->fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY), err;
	struct stat st;

	buf_reset(&r->bytes);
	if (fd < 0 && errno == ENOENT) {
		r->counts->removed++;
		return false;
	}
	if (fd < 0 || fstat(fd, &st)) {
		broken(r, name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	err = S_ISREG(st.st_mode) ? buf_read_fd(&r->bytes, fd, MAX_FILE) : -ENXIO;
	close(fd);
	if (err)
		broken(r, name, err == -ENXIO ? "it is no regular file" : strerror(-err));
	return !err;
}

/* Names have complete seconds: whether a window of this second could be in the range. */
static bool is_in_range(const struct store_request *q, uint64_t second_ns)
{
	return second_ns < q->to_ns && second_ns + SECOND > q->from_ns;
}

static int hand_over(struct reading *r, const struct file_name *parsed, const char *name,
		     const struct fusee_profile *p)
{
	int err = parsed ? label_sets_learn(&r->sets, parsed, p) : 0;

	if (err || p->start_ns < r->request->from_ns || p->start_ns >= r->request->to_ns)
		return err;
	return r->reader->window(r->reader->arg, p, name);
}

static int read_file(struct reading *r, const char *name)
{
	struct file_name parsed;
	bool is_ours = file_name_parse(name, &parsed);
	struct pprof_file *file = NULL;
	const char *why = "";
	int err;

	if (is_ours &&
	    (!is_in_range(r->request, parsed.start_ns) || label_sets_excludes(&r->sets, &parsed))) {
		r->counts->skipped++;
		return 0;
	}
	if (!read_bytes(r, name))
		return 0;
	r->counts->bytes += r->bytes.len;
	err = pprof_decode(r->bytes.p, r->bytes.len, &file, &why);
	if (err == -ENOMEM)
		return err;
	if (err) {
		broken(r, name, why);
		return 0;
	}
	r->counts->read++;
	err = hand_over(r, is_ours ? &parsed : NULL, name, pprof_profile(file));
	pprof_free(file);
	return err;
}

/* ---- the store ---- */

static int read_folder(struct store *s, const struct store_request *request,
		       const struct store_reader *reader, struct store_counts *counts)
{
	struct reading r = {(struct folder *)(void *)s, request, reader, counts, {0}, {0}};
	struct list l = {0};
	int err = list_files(r.folder, &l);

	label_sets_init(&r.sets, request->selector);
	counts->files += l.n;
	for (size_t i = 0; !err && i < l.n; i++) {
		if (reader->progress)
			reader->progress(reader->arg, i, l.n);
		err = read_file(&r, l.names[i]);
	}
	label_sets_fini(&r.sets);
	buf_fini(&r.bytes);
	list_fini(&l);
	return err;
}

static void close_folder(struct store *s)
{
	close(((struct folder *)(void *)s)->fd);
	free(s);
}

/* Whether this is a folder of sink.parquet whose first window is not complete yet. */
static bool is_begun(int folder)
{
	static const char *const names[] = {"samples", "stacks", ".unfinished"};
	struct stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!fstatat(folder, names[i], &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
			return true;
	return false;
}

#define LACKS "no file ends with .pb.gz or .pprof"

int folder_open(struct store **ret, const char *path)
{
	static const struct store_ops ops = {
		.read = read_folder, .close = close_folder, .lacks = LACKS};
	static const struct store_ops begun = {
		.read = read_folder,
		.close = close_folder,
		.lacks = LACKS ", and none in samples/date=../hour=../ with .parquet yet"};
	struct folder *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->fd < 0) {
		int r = -errno;

		free(f);
		return r;
	}
	f->store.ops = is_begun(f->fd) ? &begun : &ops;
	*ret = &f->store;
	return 0;
}
