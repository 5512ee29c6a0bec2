/* SPDX-License-Identifier: Apache-2.0 */
#include "query/parquet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "query/parquet_list.h"
#include "query/parquet_samples.h"

struct parquet {
	struct store store;
	int samples, stacks;
};

/* One store_read(). */
struct reading {
	struct parquet *store;
	const struct store_request *request;
	const struct store_reader *reader;
	struct store_counts *counts;
	struct buf name;                /* of a file, for messages */
	struct parquet_list list, late; /* late: files that appeared meanwhile, and were read */
	const char *path;               /* of the file that is being read */
};

static int broken(struct reading *r, const struct parquet_window *w, int err)
{
	bool has_sentence = (err == -EINVAL || err == -EFBIG) && *w->why;

	r->counts->broken++;
	buf_reset(&r->name);
	buf_printf(&r->name, "%s/%s", w->failed, w->path);
	buf_add(&r->name, "", 1);
	if (r->name.error)
		return r->name.error;
	r->reader->broken(r->reader->arg, r->name.p, has_sentence ? w->why : strerror(-err));
	return 0;
}

/* Retention removes a window's samples before its stacks. */
static bool is_there(const struct reading *r, const struct parquet_window *w)
{
	return !faccessat(r->store->samples, w->path, F_OK, 0);
}

static int take_window(void *arg, const struct fusee_profile *p)
{
	struct reading *r = arg;

	return r->reader->window(r->reader->arg, p, r->path);
}

/* 0; -ENOENT: it is not there any more; another error ends all. */
static int read_path(struct reading *r, const char *path, const struct parquet_excluded *excluded)
{
	struct parquet_window w = {.samples = r->store->samples,
				   .stacks = r->store->stacks,
				   .path = path,
				   .excluded = excluded};
	int err;

	r->path = path;
	err = parquet_samples_read(&w, r->request, take_window, r);
	r->counts->bytes += w.bytes;
	r->counts->read += w.nwindows;
	if (w.stopped)
		return w.stopped;
	if (err == -ENOENT && !is_there(r, &w))
		return err;
	if (!err) {
		r->counts->skipped++;
		r->counts->excluded += w.in_range;
	}
	/* no memory: its size may be the cause */
	return err < 0 ? broken(r, &w, err) : 0;
}

/* ---- windows that are merged while they are read ---- */

/* "date=../hour=../" */
static size_t folder_of(const char *path)
{
	const char *end = strrchr(path, '/');

	return end ? (size_t)(end - path) + 1 : 0;
}

static bool is_known(const struct parquet_list *list, const char *path)
{
	for (uint64_t i = 0; i < list->n; i++)
		if (!strcmp(list->entries[i].path, path))
			return true;
	return false;
}

/* What is known of a partition's windows: those that were read. */
struct known {
	const struct parquet_list *list;
	const char *path;
	size_t folder;
};

static bool was_read(void *arg, struct fusee_str name)
{
	const struct known *k = arg;

	for (uint64_t i = 0; i < k->list->n; i++) {
		const struct parquet_entry *e = &k->list->entries[i];

		if (e->read && !strncmp(e->path, k->path, k->folder) &&
		    strlen(e->path) == k->folder + name.len &&
		    !memcmp(e->path + k->folder, name.p, name.len))
			return true;
	}
	return false;
}

static int note_late(struct reading *r, const char *path)
{
	struct parquet_entry e = {.path = strdup(path)};

	return parquet_list_add(&r->late, e);
}

/* A window is not there any more. If it was merged, what it was merged into is: the windows of that
 * are read which were not read before. 1: some of its folder were merged. */
static int read_merged(struct reading *r, const char *path)
{
	struct known known = {&r->list, path, folder_of(path)};
	const struct parquet_excluded excluded = {was_read, &known};
	struct parquet_list now = {0};
	int err = parquet_list_read(&now, r->store->samples);
	bool any = false;

	for (uint64_t i = 0; !err && i < now.n; i++) {
		const char *p = now.entries[i].path;

		if (strncmp(p, path, known.folder) || !parquet_list_is_merged(p))
			continue;
		any = true;
		if (is_known(&r->list, p) || is_known(&r->late, p))
			continue;
		err = note_late(r, p);
		if (!err)
			err = read_path(r, p, &excluded);
		if (err == -ENOENT) /* removed as too old */
			err = 0;
	}
	parquet_list_fini(&now);
	return err ? err : any;
}

static int read_file(struct reading *r, struct parquet_entry *e)
{
	struct parquet_window w = {.path = e->path, .failed = "samples", .why = ""};
	int err;

	if (e->from_ns >= r->request->to_ns || e->to_ns <= r->request->from_ns) {
		r->counts->skipped++;
		return 0;
	}
	if (e->error)
		return broken(r, &w, e->error);
	err = read_path(r, e->path, NULL);
	e->read = err != -ENOENT;
	if (err != -ENOENT)
		return err;
	err = parquet_list_is_merged(e->path) ? 0 : read_merged(r, e->path);
	r->counts->removed += !err;
	return err < 0 ? err : 0;
}

static int read_all(struct store *s, const struct store_request *request,
		    const struct store_reader *reader, struct store_counts *counts)
{
	struct reading r = {.store = (struct parquet *)(void *)s,
			    .request = request,
			    .reader = reader,
			    .counts = counts};
	struct parquet_list *list = &r.list;
	int err = parquet_list_read(list, r.store->samples);

	counts->files += list->n;
	for (uint64_t i = 0; !err && i < list->n; i++) {
		if (reader->progress)
			reader->progress(reader->arg, i, list->n);
		err = read_file(&r, &list->entries[i]);
	}
	parquet_list_fini(list);
	parquet_list_fini(&r.late);
	buf_fini(&r.name);
	return err;
}

static void close_store(struct store *s)
{
	struct parquet *p = (struct parquet *)(void *)s;

	if (p->samples >= 0)
		close(p->samples);
	if (p->stacks >= 0)
		close(p->stacks);
	free(p);
}

/* A descriptor, or -errno; what is no folder is none. */
static int open_folder(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 ? fd : errno == ENOTDIR ? -ENOENT : -errno;
}

int parquet_open(struct store **ret, const char *path)
{
	static const struct store_ops ops = {.read = read_all,
					     .close = close_store,
					     .lacks = "no file in samples/date=../hour=../ ends "
						      "with .parquet"};
	int dir = open_folder(AT_FDCWD, path), r = dir < 0 ? dir : 0;
	struct parquet *p = calloc(1, sizeof(*p));

	if (!p || r) {
		free(p);
		if (dir >= 0)
			close(dir);
		return r ? r : -ENOMEM;
	}
	p->store.ops = &ops;
	p->samples = open_folder(dir, "samples");
	p->stacks = open_folder(dir, "stacks");
	close(dir);
	r = p->samples < 0 ? p->samples : p->stacks < 0 ? p->stacks : 0;
	if (r)
		close_store(&p->store);
	else
		*ret = &p->store;
	return r;
}
