/* SPDX-License-Identifier: Apache-2.0 */
/* The labels that a program has given its threads, in profiles. */
#ifndef PROFILER_BUILD_TEXTS_H
#define PROFILER_BUILD_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/profile.h>

#include "pipeline/collector.h"

struct build_options;
struct builder;

struct build_texts {
	const struct dict_entry
		*of;    /* of the next sample: an entry of collector.texts; NULL: none */
	uint64_t taken; /* labels of samples that were omitted */
	bool ids;       /* are labels trace_id and span_id ids of the next sample? */
};

/* The next sample: its texts, and its ids. If it has none, labels trace_id and span_id as
 * OpenTelemetry writes them are its ids: so do programs of Go publish their span. */
void build_texts_begin(struct build_texts *, const struct build_options *, const struct collector *,
		       const struct ids_key *, struct builder *);
/* Puts them behind the n labels of `count` samples of a label set, of which there may be `most`.
 * Those that the options omit are, and, counted, those whose name is fusee's or another label's of
 * the sample or of its label set. Returns how many labels there are. */
uint32_t build_texts_put(struct build_texts *, const struct build_options *, uint32_t set,
			 uint64_t count, struct fusee_label *labels, uint32_t n, uint32_t most);
/* Says in a comment how many were omitted. */
void build_texts_end(const struct build_texts *, struct builder *);
#endif
