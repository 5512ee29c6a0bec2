/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of samples in profiles. */
#ifndef PROFILER_BUILD_LABELS_H
#define PROFILER_BUILD_LABELS_H

#include <stdint.h>

#include "pipeline/collector.h"
#include "plugin/plugin.h"
#include "profiler/internal/build_texts.h"

/* What the labels of a sample without texts depend on, and their number in the builder. */
struct known_labels {
	uint32_t process, comm, part, cpu, sampler; /* of struct sample_key; process 0: free */
	uint32_t labels;
};

struct build_labels {
	struct builder *b; /* borrowed, as are all but `known` */
	const struct build_options *o;
	const struct collector *c;
	const struct chooser_set *choosers;
	struct known_labels *known;
	struct build_texts texts; /* of the next sample */
};

/* The others are set. 0 or -ENOMEM. */
int build_labels_init(struct build_labels *);
void build_labels_fini(struct build_labels *);
/* The labels of `count` samples, for builder_sample_of(). */
uint32_t build_labels_of(struct build_labels *, const struct sample_key *, uint64_t count);
#endif
