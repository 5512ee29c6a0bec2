/* SPDX-License-Identifier: Apache-2.0 */
/* What bpf_sampler.c (programs) and bpf_tables.c (what they are told) share. Nobody else includes
 * this. */
#ifndef SAMPLING_BPF_STATE_H
#define SAMPLING_BPF_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "../../bpf/sampler.h"
#include "base/table.h"
#include "sampling/bpf_sampler.h"
#include "sampling/files.h"

#define SLAB_BYTES (1u << 20) /* FUSEE_SLAB_WORDS of fusee/unwinder.bpf.h */
#define BPF_LINKS 4u
#define SLAB_WORDS (SLAB_BYTES / 4)

struct bpf_object;
struct bpf_link;

/* A free range of words. */
struct bpf_hole {
	uint32_t at, words;
};

struct bpf_sampler {
	struct bpf_object *object;
	struct bpf_link *links[BPF_LINKS];
	int program, pids, output, counts, grid; /* owned by the object */
	int unwinder[SAMPLER_TABLES];            /* index in the set, -1: not there */

	uint32_t nslabs, nelements;
	uint32_t *slabs;                  /* mapped: fusee_slabs */
	struct sampler_process *elements; /* mapped: sampler_processes; [0] is nobody's */
	size_t slabs_len, elements_len;
	struct process **owners; /* of elements; borrowed, NULL: none, or within a chain */
	uint32_t *free_elements, nfree;
	struct table placed;    /* file * SAMPLER_TABLES + number -> struct placed * */
	struct bpf_hole *holes; /* by address */
	uint32_t nholes, holes_cap;
	uint64_t used_words;
	uint32_t ids;         /* of tables */
	uint64_t last_change; /* as elements[0] said when all were looked at */
	uint32_t nchanged;    /* of these, as it was then */
	uint64_t clock;       /* raised at each put: who was used last */
};

int bpf_tables_init(struct bpf_sampler *);
void bpf_tables_fini(struct bpf_sampler *);
void bpf_tables_stats(const struct bpf_sampler *, struct bpf_sampler_stats *);
#endif
