/* SPDX-License-Identifier: Apache-2.0 */
/* What records of the BPF sampler say of the sample that follows them. For one thread. */
#ifndef PIPELINE_PRECEDING_H
#define PIPELINE_PRECEDING_H

#include <stdint.h>
#include <sys/types.h>

#include "../../../bpf/records.h"

#include "unwind/sample.h"
#include "unwind/walk.h"

#define PRECEDING_MOST 64u /* continuations that are kept: a few for each busy CPU */

/* A continuation of a thread's sample. */
struct preceding_continuation {
	struct sample_continuation is; /* frames: owned; NULL: the place is free */
	uint64_t time, process;        /* of its record: CLOCK_MONOTONIC ns, id */
	pid_t tid;
};

struct preceding {
	pid_t unrecorded;      /* an emission of this thread's next stack was lost; 0: none */
	struct sample_ids ids; /* of the sample that follows at once */
	unsigned char texts[SAMPLE_TEXTS]; /* of them */
	uint32_t next;                     /* place of the next continuation, whatever is there */
	struct preceding_continuation continuations[PRECEDING_MOST];
};

/* Keeps the walk, without its kernel frames, as a continuation of the sample that follows; without
 * memory nothing. */
void preceding_add(struct preceding *, pid_t tid, uint64_t time, uint64_t process,
		   const struct sample_continuation *about, const struct walk *);
/* Moves those of a sample of this process to `to`, in order of time, and frees all others of its
 * thread. */
void preceding_take(struct preceding *, const struct sample *, uint64_t process,
		    struct sample_continuation to[SAMPLE_CONTINUATIONS], uint32_t *n);
/* Sets the ids and labels of the sample that follows, of a record that does not contradict itself.
 */
void preceding_set_ids(struct preceding *, const struct record_labels *);
/* .. and takes them, once; its texts are valid until the next record. */
struct sample_ids preceding_take_ids(struct preceding *);
void preceding_fini(struct preceding *);
#endif
