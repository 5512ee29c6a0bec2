/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code: asked of the worker once for each address of a file, then kept, so that a window
 * after window costs only what is new. For one thread.
 */
#ifndef SAMPLING_SYMBOLIZER_H
#define SAMPLING_SYMBOLIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "sampling/collector.h"
#include "unwind/files.h"
#include "sampling/kernel_names.h"

/* One source frame; texts live as long as its file's names. */
struct source_frame {
	const char *name, *system_name, *file;
	uint32_t line, column, start_line, flags; /* enum symbols_flags */
};

/* Of one address, innermost frame first. */
struct symbolized_address {
	uint64_t address; /* ELF virtual address */
	uint32_t n;       /* 0: the worker could not say */
	struct source_frame frames[];
};

struct symbolizer;

int symbolizer_new(struct symbolizer **ret, struct files *, struct worker *, bool inlines);
void symbolizer_free(struct symbolizer *); /* NULL is fine */
/*
 * Asks for all frames of the collector that are not known yet. done(arg) is called once they are,
 * inside of worker_dispatch(), which is to be called soon, or of this call. The collector must live
 * until then. 0 or -ENOMEM: done is not called.
 */
int symbolizer_request(struct symbolizer *, const struct collector *, void (*done)(void *arg),
		       void *arg);
/* NULL: not known, or not readable. */
const struct symbolized_address *symbolizer_find(const struct symbolizer *, uint32_t file,
						 uint64_t offset);
/* INSPECTION_SYMTAB..: where the names of a file came from; 0: none were asked for. */
uint32_t symbolizer_symbol_source(const struct symbolizer *, uint32_t file);
struct kernel_names *symbolizer_kernel_names(struct symbolizer *);
/* Its file is about to be freed. */
void symbolizer_drop_file(struct symbolizer *, uint32_t file);
/* A job under way needs this file's names. */
bool symbolizer_is_busy(const struct symbolizer *);
/* Forgets files that were not asked for lately, until it holds no more than this. */
void symbolizer_trim(struct symbolizer *, uint64_t bytes);
uint64_t symbolizer_bytes(const struct symbolizer *);
#endif
