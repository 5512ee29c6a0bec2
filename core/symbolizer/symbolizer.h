/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, files, lines and inlined functions of addresses in files. Each address is requested
 * from the worker once; the answer is kept, so that a window costs requests only for addresses that
 * are new in it. For one thread.
 */
#ifndef SYMBOLIZER_SYMBOLIZER_H
#define SYMBOLIZER_SYMBOLIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/collector.h"
#include "symbolizer/internal/file_symbols.h"
#include "files/files.h"
#include "symbolizer/internal/kernel_names.h"

struct symbolizer;

/* files and worker are borrowed until symbolizer_free(). inlines: inlined functions too. 0 or
 * -ENOMEM. */
int symbolizer_new(struct symbolizer **ret, struct files *, struct worker *, bool inlines);
/* From now on tables of names are made, by worker_names_make(). For a program that runs long. */
void symbolizer_make_tables(struct symbolizer *);
void symbolizer_free(struct symbolizer *); /* NULL is fine */
/*
 * Requests the symbols of all frames of the collector that are not known yet. server_names: except
 * those of files that a server can have (struct build_options). done(arg) is called when all are
 * answered: by worker_dispatch(), by symbolizer_expire(), or before this function returns. The
 * collector is borrowed until then.
 *
 * deadline_ns: CLOCK_MONOTONIC. 0: none; then the call and worker_dispatch() may wait 5 s for files
 * that the opener has not opened in time. With a deadline they do not wait: such files are not
 * used, and the symbols are requested anew by the first later request for which they can be opened.
 *
 * 0; -ENOMEM: done is not called.
 */
int symbolizer_request(struct symbolizer *, const struct collector *, bool server_names,
		       uint64_t deadline_ns, void (*done)(void *arg), void *arg);
/* Calls done() of the requests whose deadline has passed; UINT64_MAX: of all. Answers that come
 * later are kept for other requests. Returns the number of files without an answer. */
uint32_t symbolizer_expire(struct symbolizer *, uint64_t now);
/* The symbols at an offset of a file; NULL: not requested, or not readable. Valid until the symbols
 * of the file are dropped. */
const struct symbolized_address *symbolizer_find(const struct symbolizer *, uint32_t file,
						 uint64_t offset);
/* The sections that the symbols of a file come from: flags of INSPECTION_SOURCES. 0: no symbols
 * were requested. */
uint32_t symbolizer_symbol_source(const struct symbolizer *, uint32_t file);
/* The build ID of the dwz file that a file's debug information names and that was not found: its
 * bytes, valid until the symbols of the file are dropped; 0: none is missing. */
uint32_t symbolizer_missing_alt(const struct symbolizer *, uint32_t file, const uint8_t **id);
/* Whether the file's debug file was not opened in time, and is to be tried again. */
bool symbolizer_awaits_debug(const struct symbolizer *, uint32_t file);
/* To be called when a debug or dwz file of this build ID has been fetched: later requests symbolize
 * the files anew to which it belongs. */
void symbolizer_debug_arrived(struct symbolizer *, const uint8_t *build_id, uint32_t len);
struct kernel_names *symbolizer_kernel_names(struct symbolizer *); /* borrowed */
/* Frees the symbols of a file. To be called before the file is freed. */
void symbolizer_drop_file(struct symbolizer *, uint32_t file);
/* Drops the symbols of files, the least recently requested first, until at most `bytes` bytes are
 * used. Symbols that a request needs whose done() was not called yet stay. */
void symbolizer_trim(struct symbolizer *, uint64_t bytes);
uint64_t symbolizer_bytes(const struct symbolizer *);
#endif
