// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/internal/file_table.h"

#include <errno.h>

#include "names/names.h"

#define QUALITY                                                                         \
	(INSPECTION_GO | INSPECTION_SYMTAB | INSPECTION_DYNSYM | INSPECTION_DEBUGDATA | \
	 INSPECTION_DWARF)

void file_table_find(struct file_symbols *f, struct worker *w, const struct worker_symbolization *s,
		     const struct worker_requester *by)
{
	f->has_table = !worker_names_key(w, s, by, f->table_key);
}

static void put(struct file_symbols *f, uint64_t offset, uint64_t address,
		const struct symbols_frame *from, uint32_t n)
{
	struct worker_frame frames[NAMES_MAX_FRAMES];

	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct worker_frame){
			.name = from[i].name,
			.system_name = from[i].system_name,
			.file = from[i].file,
			.line = from[i].line,
			.column = from[i].column,
			.start_line = from[i].start_line,
			.flags = from[i].flags,
		};
	file_symbols_put(f, offset, address, frames, n);
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
			put(f, offsets[i], addresses[i], frames, nframes);
			continue;
		}
		offsets[others] = offsets[i];
		addresses[others++] = addresses[i];
	}
	if (others < n)
		f->symbol_source = names_quality(t) & QUALITY;
	names_close(t);
	if (err && err != -ENOENT && err != -ENOMEM) {
		worker_names_remove(w, f->table_key, err);
		f->has_table = false;
	}
	return others;
}
