/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/windows.h"

#include <errno.h>
#include <stdlib.h>

struct windows {
	struct store store;
	struct ui_files *files;
};

static int read_file(struct ui_files *f, uint32_t i, const struct store_request *request,
		     const struct store_reader *reader, struct store_counts *counts)
{
	const struct fusee_profile *p;
	struct buf error = {0};
	int r = ui_files_profile(f, i, &p, &error);

	if (r && r != -ENOMEM) {
		buf_add(&error, "", 1);
		counts->broken++;
		reader->broken(reader->arg, f->files[i].name, error.error ? "" : error.p);
		r = 0;
	} else if (!r && p->start_ns >= request->from_ns && p->start_ns < request->to_ns) {
		counts->read++;
		r = reader->window(reader->arg, p, f->files[i].name);
	} else if (!r) {
		counts->skipped++;
	}
	buf_fini(&error);
	return r;
}

static int read_files(struct store *s, const struct store_request *request,
		      const struct store_reader *reader, struct store_counts *counts)
{
	struct ui_files *f = ((struct windows *)(void *)s)->files;
	int r = ui_files_look(f);

	for (uint32_t i = 0; !r && i < f->n; i++) {
		if (f->files[i].bytes < 0)
			continue;
		counts->files++;
		r = read_file(f, i, request, reader, counts);
	}
	return r;
}

static void close_windows(struct store *s)
{
	free(s);
}

int ui_windows_open(struct store **ret, struct ui_files *files)
{
	static const struct store_ops ops = {
		.read = read_files, .close = close_windows, .lacks = "no file is listed"};
	struct windows *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->store.ops = &ops;
	w->files = files;
	*ret = &w->store;
	return 0;
}
