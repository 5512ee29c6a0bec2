/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "parquet/internal/samples.h"

#define HOUR (3600 * 1000000000ull)

struct parquet {
	struct store store;
	struct store_ops ops;
	struct files *files; /* owned */
};

/* One store_read(). */
struct reading {
	struct parquet *store;
	const struct store_request *request;
	const struct store_reader *reader;
	struct store_counts *counts;
	struct buf name;                /* of a file, for messages */
	uint64_t done, all;             /* files; all: 0 while they are listed */
	struct parquet_list list, late; /* late: files that appeared while reading, and were read */
	const char *path;               /* of the file that is being read */
};

static int broken(struct reading *r, const struct parquet_window *w, int err)
{
	bool has_sentence = (err == -EINVAL || err == -EFBIG) && *w->why;
	const char *why = has_sentence     ? w->why
			  : err == -ESTALE ? "it was changed while it was read"
					   : strerror(-err);

	r->counts->broken++;
	buf_reset(&r->name);
	buf_printf(&r->name, "%s/%s", w->failed, w->path);
	buf_add(&r->name, "", 1);
	if (r->name.error)
		return r->name.error;
	r->reader->broken(r->reader->arg, r->name.p, why);
	return 0;
}

/* Whether the window still exists: retention removes its samples before its stacks. */
static bool is_there(const struct reading *r, const struct parquet_window *w)
{
	return r->store->files->ops->has(r->store->files, w->path);
}

static int take_window(void *arg, const struct fusee_profile *p)
{
	struct reading *r = arg;

	return r->reader->window(r->reader->arg, p, r->path);
}

static void count_requests(struct reading *r)
{
	r->counts->fetched = r->store->files->fetched;
	r->counts->requests = r->store->files->requests;
}

/* 0; -ENOENT: the file was removed; any other error ends store_read(). */
static int read_path(struct reading *r, const char *path, const struct parquet_excluded *excluded)
{
	struct parquet_window w = {.files = r->store->files, .path = path, .excluded = excluded};
	int err;

	r->path = path;
	err = parquet_samples_read(&w, r->request, take_window, r);
	count_requests(r);
	r->counts->bytes += w.bytes;
	r->counts->read += w.nwindows;
	if (w.nwindows) /* without windows nothing was delivered */
		r->counts->added += w.nadded;
	if (w.stopped)
		return w.stopped;
	if (err == -ENOENT && !is_there(r, &w))
		return err;
	if (r->store->files->failure)
		return -EIO;
	if (!err) {
		r->counts->skipped++;
		r->counts->excluded += w.in_range;
	}
	/* -ENOMEM too: the file's size may be the cause */
	return err < 0 ? broken(r, &w, err) : 0;
}

static int list(struct reading *r, struct parquet_list *to, uint64_t from_ns, uint64_t to_ns)
{
	int err = r->store->files->ops->list(r->store->files, to, from_ns, to_ns);

	count_requests(r);
	return err;
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

/* Tells which windows of a partition were read. */
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

/* A listed file was removed. If it was merged, reads from the merged files of its folder the
 * windows that were not read before. 1: the folder has merged files. */
static int read_merged(struct reading *r, const struct parquet_entry *e)
{
	const char *path = e->path;
	uint64_t hour = e->from_ns - e->from_ns % HOUR;
	struct known known = {&r->list, path, folder_of(path)};
	const struct parquet_excluded excluded = {was_read, &known};
	struct parquet_list now = {0};
	int err = list(r, &now, hour, hour + HOUR);
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
	err = parquet_list_is_merged(e->path) ? 0 : read_merged(r, e);
	r->counts->removed += !err;
	return err < 0 ? err : 0;
}

static void show_progress(void *arg)
{
	struct reading *r = arg;

	count_requests(r);
	r->reader->progress(r->reader->arg, r->all ? r->done : r->list.n, r->all);
}

static int read_all(struct store *s, const struct store_request *request,
		    const struct store_reader *reader, struct store_counts *counts)
{
	struct reading r = {.store = (struct parquet *)(void *)s,
			    .request = request,
			    .reader = reader,
			    .counts = counts};
	int err;

	r.store->files->progress = reader->progress ? show_progress : NULL;
	r.store->files->arg = &r;
	err = list(&r, &r.list, request->from_ns, request->to_ns);
	r.all = r.list.n;
	counts->files += r.all;
	counts->omitted += r.list.omitted;
	for (; !err && r.done < r.all; r.done++) {
		if (reader->progress)
			reader->progress(reader->arg, r.done, r.all);
		err = read_file(&r, &r.list.entries[r.done]);
	}
	r.store->files->progress = NULL;
	parquet_list_fini(&r.list);
	parquet_list_fini(&r.late);
	buf_fini(&r.name);
	return err;
}

static void close_store(struct store *s)
{
	struct parquet *p = (struct parquet *)(void *)s;

	p->files->ops->close(p->files);
	free(p);
}

static const char *failure(const struct store *s)
{
	return ((const struct parquet *)(const void *)s)->files->failure;
}

int parquet_open(struct store **ret, struct files *files)
{
	struct parquet *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->ops = (struct store_ops){.read = read_all,
				    .close = close_store,
				    .failure = failure,
				    .lacks = files->ops->lacks};
	p->store.ops = &p->ops;
	p->files = files;
	*ret = &p->store;
	return 0;
}
