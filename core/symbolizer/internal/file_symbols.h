/* SPDX-License-Identifier: Apache-2.0 */
/* The symbols of one file, as workers and its table of names have them: of single offsets and of
 * spans. For one thread. */
#ifndef SYMBOLIZER_FILE_SYMBOLS_H
#define SYMBOLIZER_FILE_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dict.h"
#include "base/hashmap.h"
#include "worker/worker.h"

/* A debug file that was not opened in time so often counts as missing, and is then requested from
 * servers. */
#define FILE_SYMBOLS_MOST_TRIES 3u

/* Source frames, innermost first, of all addresses that have the same. The symbols of the file own
 * their texts. */
struct symbolized_address {
	uint64_t n; /* 0: the worker found no symbol */
	struct symbols_frame frames[];
};

/* ELF virtual addresses [lo, hi) that all have the same source frames. The worker sends spans
 * around the addresses that were requested, so that later addresses in them need no request. */
struct span {
	uint64_t lo, hi;
	const struct symbolized_address *symbols;
};

struct file_symbols {
	struct hashmap by_offset; /* file offset + 1 -> const struct symbolized_address * */
	struct span *spans;       /* sorted, not overlapping */
	uint32_t nspans;
	/* Texts and struct symbolized_address: thousands of blocks would fragment the heap. */
	struct dict kept;
	uint64_t bytes;         /* without `kept` */
	uint64_t span_bytes;    /* of spans and what they point at, but for texts */
	uint64_t used;          /* number of the last request for this file */
	uint32_t symbol_source; /* flags of INSPECTION_SOURCES */
	char *alt_name; /* path of its dwz file, from its debug information; NULL: unknown */
	uint8_t alt_id[64];
	uint32_t alt_id_len;
	bool alt_missing;  /* no such file was found */
	bool no_fetched;   /* see debug_files_drop_fetched() */
	bool late[2];      /* DEBUG_FILE, ALT_FILE: it was not opened in time, and may exist */
	uint32_t tries;    /* to open late files */
	uint32_t failures; /* requests in turn that failed for want of memory */
	uint64_t tried_ns; /* when `tries` was counted last, CLOCK_MONOTONIC; 0: never */
	bool has_table;    /* of names, on disk; see file_table.h */
	uint8_t table_key[32];
	bool stale; /* a debug file has been found since: the symbols are to be requested again */
};

struct file_symbols *file_symbols_new(void); /* NULL: no memory */
void file_symbols_free(struct file_symbols *);
/* Memory for symbols and their texts. */
uint64_t file_symbols_bytes(const struct file_symbols *);
/* NULL: it has no symbols yet. */
const struct symbolized_address *file_symbols_find(const struct file_symbols *, uint64_t offset);
/* The source frames of an offset; n 0: it has no symbol. Without memory it has none yet. */
void file_symbols_put(struct file_symbols *, uint64_t offset, const struct symbols_frame *,
		      uint32_t n);
/* Keeps the spans of an answer, except those that overlap known spans. */
void file_symbols_put_spans(struct file_symbols *, const struct worker_symbols *);
/* Symbolizes an offset by a known span. false: none covers its address. */
bool file_symbols_put_by_span(struct file_symbols *, uint64_t offset, uint64_t address);
/* Counts a try to open late files. */
void file_symbols_count_try(struct file_symbols *);
/* After an answer, err its error: are the addresses requested again? For want of memory, a few
 * times in turn. */
bool file_symbols_try_again(struct file_symbols *, int err);
/* Notes which files, late[DEBUG_FILE] and late[ALT_FILE], the symbols of a request lack. The note
 * stays until these files are tried again, whatever other requests have. waited: the request waited
 * for them, so the files count as missing now. */
void file_symbols_note_late(struct file_symbols *, const bool late[2], bool waited);
#endif
