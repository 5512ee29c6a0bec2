// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/internal/file_table.h"

#include <errno.h>

#include "names/names.h"

void file_table_find(struct file_symbols *f, struct worker *w, const struct worker_symbolization *s,
		     const struct worker_requester *by)
{
	f->has_table = !worker_names_key(w, s, by, f->table_key);
}

uint32_t file_table_look_up(struct file_symbols *f, struct worker *w, uint64_t *offsets,
			    uint64_t *addresses, uint32_t n)
{
	struct names_table *t;
	const struct symbols_frame *frames;
	uint32_t others = 0, nframes;
	int err = 0;

	if (!f->has_table || worker_names_open(w, f->table_key, &t)) {
		f->has_table = false;
		return n;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!err || err == -ENOENT)
			err = names_find(t, addresses[i], &frames, &nframes);
		if (!err) {
			file_symbols_put(f, offsets[i], frames, nframes);
			continue;
		}
		offsets[others] = offsets[i];
		addresses[others++] = addresses[i];
	}
	if (others < n)
		f->symbol_source = names_quality(t) & INSPECTION_SOURCES;
	names_close(t);
	if (err && err != -ENOENT && err != -ENOMEM) {
		worker_names_remove(w, f->table_key, err);
		f->has_table = false;
	}
	return others;
}
