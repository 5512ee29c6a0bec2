/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hits of a collector whose memory is followed until it is freed. Which of them are in use is the
 * BPF sampler's to know, by their ids (bpf/inuse.h). For one thread.
 */
#ifndef PIPELINE_FOLLOWED_H
#define PIPELINE_FOLLOWED_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct followed_hit {
	uint32_t id;     /* of the BPF sampler */
	uint32_t sample; /* id in collector.samples */
	uint32_t ids;    /* id in collector.ids; 0: it carries none */
	uint32_t pad;
	uint64_t weight, hits; /* as of struct sample_sum */
};

/* {0}: no hits. */
struct followed_hits {
	struct buf all; /* struct followed_hit */
	/* Of the collector: of memory that it has counted; stacks of others that found no room. */
	uint64_t bytes, refused;
};

/* What of a sample is in use. */
struct followed_sum {
	uint64_t weight, hits;
};

/* 0 or -ENOMEM. */
int followed_add(struct followed_hits *, const struct followed_hit *);
struct followed_hit *followed_at(const struct followed_hits *, size_t *n);
/* Forgets hits that are not among these ids, which ascend. Ids are given again after a long time:
 * of hits with one id, the oldest stay, as many as there are of it. 0 or -ENOMEM. */
int followed_keep(struct followed_hits *, const uint32_t *ids, size_t n);
/* The sums of the hits, by row: a sample that carries no ids has its id, another nsamples and its
 * id in ids, which are less than nids. The caller frees it. NULL: no memory. */
struct followed_sum *followed_sums(const struct followed_hits *, uint32_t nsamples, uint32_t nids);
#endif
