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
	struct buf name; /* of a file, for messages */
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

static int read_file(struct reading *r, const struct parquet_entry *e)
{
	struct parquet_window w = {
		.samples = r->store->samples, .stacks = r->store->stacks, .path = e->path};
	const struct fusee_profile *p;
	struct builder *b;
	int err;

	if (e->from_ns >= r->request->to_ns || e->to_ns <= r->request->from_ns) {
		r->counts->skipped++;
		return 0;
	}
	if (e->error) {
		w.failed = "samples";
		w.why = "";
		return broken(r, &w, e->error);
	}
	err = parquet_samples_read(&w, r->request, &b, &p);
	r->counts->bytes += w.bytes;
	if (err == 1) {
		r->counts->read++;
		err = r->reader->window(r->reader->arg, p, e->path);
		builder_free(b);
	} else if (!err) {
		r->counts->skipped++;
		r->counts->excluded += w.in_range;
	} else if (err == -ENOENT && !is_there(r, &w)) {
		r->counts->removed++;
		err = 0;
	} else { /* no memory: its size may be the cause */
		err = broken(r, &w, err);
	}
	return err;
}

static int read_all(struct store *s, const struct store_request *request,
		    const struct store_reader *reader, struct store_counts *counts)
{
	struct reading r = {(struct parquet *)(void *)s, request, reader, counts, {0}};
	struct parquet_list list = {0};
	int err = parquet_list_read(&list, r.store->samples);

	counts->files += list.n;
	for (uint64_t i = 0; !err && i < list.n; i++) {
		if (reader->progress)
			reader->progress(reader->arg, i, list.n);
		err = read_file(&r, &list.entries[i]);
	}
	parquet_list_fini(&list);
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
