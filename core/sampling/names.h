/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code: asked of the worker once for each address of a file, then kept, so that a window
 * after window costs only what is new. For one thread.
 */
#ifndef SAMPLING_NAMES_H
#define SAMPLING_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "sampling/collector.h"
#include "unwind/files.h"
#include "sampling/kernel_names.h"

/* One source frame; texts live as long as its file's names. */
struct name_frame {
	const char *name, *system_name, *file;
	uint32_t line, column, start_line, flags; /* enum symbols_flags */
};

/* Of one address, innermost frame first. */
struct name {
	uint64_t address; /* ELF virtual address */
	uint32_t n;       /* 0: the worker could not say */
	struct name_frame frames[];
};

struct names;

int names_new(struct names **ret, struct files *, struct worker *, bool inlines);
void names_free(struct names *); /* NULL is fine */
/*
 * Asks for all frames of the collector that are not known yet. done(arg) is called once they are,
 * inside of worker_dispatch(), which is to be called soon, or of this call. The collector must live
 * until then. 0 or -ENOMEM: done is not called.
 */
int names_ask(struct names *, const struct collector *, void (*done)(void *arg), void *arg);
/* NULL: not known, or not readable. */
const struct name *names_of(const struct names *, uint32_t file, uint64_t offset);
/* INSPECTION_SYMTAB..: where the names of a file came from; 0: none were asked for. */
uint32_t names_quality(const struct names *, uint32_t file);
struct kernel_names *names_kernel(struct names *);
/* Its file is about to be freed. */
void names_forget(struct names *, uint32_t file);
/* A job under way needs this file's names. */
bool names_busy(const struct names *);
/* Forgets files that were not asked for lately, until it holds no more than this. */
void names_trim(struct names *, uint64_t bytes);
uint64_t names_bytes(const struct names *);
#endif
