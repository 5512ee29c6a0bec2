// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/internal/file_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "symbolizer/internal/debug_files.h"

#define TRY_NS 20000000000u
#define MOST_FAILURES 5u /* for want of memory: then the addresses have no names */

struct file_symbols *file_symbols_new(void)
{
	struct file_symbols *f = calloc(1, sizeof(*f));

	if (f && dict_init(&f->kept)) {
		free(f);
		return NULL;
	}
	return f;
}

void file_symbols_free(struct file_symbols *f)
{
	hashmap_fini(&f->by_offset);
	free(f->spans);
	dict_fini(&f->kept);
	free(f->alt_name);
	free(f);
}

uint64_t file_symbols_bytes(const struct file_symbols *f)
{
	return f->bytes + f->kept.bytes;
}

const struct symbolized_address *file_symbols_find(const struct file_symbols *f, uint64_t offset)
{
	return hashmap_get(&f->by_offset, offset + 1);
}

static size_t size_of(uint32_t nframes)
{
	return sizeof(struct symbolized_address) + nframes * sizeof(struct symbols_frame);
}

/* A copy that is freed with the file's symbols; NULL: no memory. */
static const void *keep(struct file_symbols *f, const void *bytes, size_t len)
{
	uint32_t id = dict_add(&f->kept, bytes, len);

	return id == DICT_NONE ? NULL : f->kept.entries[id].key;
}

/* "": no memory. */
static const char *keep_text(struct file_symbols *f, const char *text)
{
	const char *kept = text ? keep(f, text, strlen(text) + 1) : NULL;

	return kept ? kept : "";
}

static const struct symbolized_address *make(struct file_symbols *f,
					     const struct symbols_frame *frames, uint32_t n)
{
	struct symbolized_address *name = calloc(1, size_of(n)); /* its padding is zeroed */
	const struct symbolized_address *kept;

	if (!name)
		return NULL;
	name->n = n;
	for (uint32_t i = 0; i < n; i++)
		name->frames[i] = (struct symbols_frame){
			.name = keep_text(f, frames[i].name),
			.system_name = keep_text(f, frames[i].system_name),
			.file = keep_text(f, frames[i].file),
			.line = frames[i].line,
			.column = frames[i].column,
			.start_line = frames[i].start_line,
			.flags = frames[i].flags,
		};
	kept = keep(f, name, size_of(n));
	free(name);
	return kept;
}

/* NULL is fine. */
static void put(struct file_symbols *f, uint64_t offset, const struct symbolized_address *name)
{
	bool is_new = !file_symbols_find(f, offset);

	if (name && !hashmap_put(&f->by_offset, offset + 1, (void *)name) && is_new)
		f->bytes += sizeof(struct hashmap_slot) * 2;
}

static const struct span *find_span(const struct file_symbols *f, uint64_t address)
{
	uint32_t lo = 0, hi = f->nspans;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (f->spans[mid].lo <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && address < f->spans[lo - 1].hi ? &f->spans[lo - 1] : NULL;
}

void file_symbols_put(struct file_symbols *f, uint64_t offset, const struct symbols_frame *frames,
		      uint32_t n)
{
	put(f, offset, make(f, frames, n));
}

void file_symbols_put_spans(struct file_symbols *f, const struct worker_symbols *answer)
{
	struct span *all = answer->nspans ? calloc((size_t)f->nspans + answer->nspans, sizeof(*all))
					  : NULL;
	uint32_t at = 0, old = 0;
	uint64_t names = 0, added;

	for (uint32_t i = 0; all && i < answer->nspans; i++) {
		const struct worker_span *w = &answer->spans[i];
		const struct symbolized_address *name;

		while (old < f->nspans && f->spans[old].hi <= w->lo)
			all[at++] = f->spans[old++];
		if (old < f->nspans && f->spans[old].lo < w->hi)
			continue;
		name = make(f, answer->frames + w->first, w->n);
		if (!name)
			continue;
		all[at++] = (struct span){w->lo, w->hi, name};
		names += size_of(w->n);
	}
	if (!all)
		return;
	while (old < f->nspans)
		all[at++] = f->spans[old++];
	free(f->spans);
	added = (at - f->nspans) * sizeof(*all);
	f->spans = all;
	f->nspans = at;
	f->bytes += added;
	f->span_bytes += added + names;
}

bool file_symbols_put_by_span(struct file_symbols *f, uint64_t offset, uint64_t address)
{
	const struct span *span = f->nspans ? find_span(f, address) : NULL;

	if (span)
		put(f, offset, span->symbols);
	return span && file_symbols_find(f, offset);
}

/* Several sinks and pulls may request within one stall: a try each TRY_NS. */
void file_symbols_count_try(struct file_symbols *f)
{
	uint64_t now = clock_now();

	if (f->tried_ns && now - f->tried_ns < TRY_NS)
		return;
	f->tried_ns = now;
	f->tries++;
}

bool file_symbols_try_again(struct file_symbols *f, int err)
{
	f->failures = err == -ENOMEM ? f->failures + 1 : 0;
	return f->failures && f->failures <= MOST_FAILURES;
}

void file_symbols_note_late(struct file_symbols *f, const bool late[2], bool waited)
{
	f->late[DEBUG_FILE] |= late[DEBUG_FILE];
	f->late[ALT_FILE] |= late[ALT_FILE];
	if (!late[DEBUG_FILE] && !late[ALT_FILE])
		return;
	if (waited)
		f->tries = FILE_SYMBOLS_MOST_TRIES;
	else
		file_symbols_count_try(f);
}
