/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the samples of a pprof file, straight from its bytes: they are nearly all of a large file,
 * and as messages of protobuf-c they take many times its size. What protobuf-c accepts is accepted
 * here too.
 */
#ifndef PPROF_SAMPLE_H
#define PPROF_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct pprof_label {
	int64_t key, str, num, num_unit;
};

struct pprof_sample {
	struct buf locations; /* uint64_t */
	struct buf values;    /* int64_t */
	struct buf labels;    /* struct pprof_label */
	struct buf times;     /* int64_t, fusee_time */
};

/* Replaces the sample by that of these bytes. -EINVAL: they are not a sample. -ENOMEM. */
int pprof_sample_read(struct pprof_sample *, const uint8_t *p, size_t len);
void pprof_sample_fini(struct pprof_sample *);
#endif
