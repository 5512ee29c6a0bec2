/* SPDX-License-Identifier: Apache-2.0 */
/* What profiles show of the samples that a sampler has chosen, and of hits; and their types. */
#ifndef PROFILER_BUILD_CHOSEN_H
#define PROFILER_BUILD_CHOSEN_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

#include "pipeline/collector.h"

struct build_options;
struct builder;
struct kernel_names;

/* Adds the types of values. Returns that of the weights, static or of the options, with its unit.
 */
const char *build_types(struct builder *, const struct build_options *,
			const struct fusee_instance *chooser, const char **unit);
/* How many hits the samples represent, where that is a value. */
int64_t build_hits(const struct build_options *, const struct sample_sum *);
/* The label of sample_key.part. false: it has none. */
bool build_chosen_label(const struct fusee_instance *chooser, uint32_t part,
			struct fusee_label *ret);
/* How many of the first frames of a stack, an entry of collector.stacks, are of the interrupt in
 * which it was taken and of what the sampler leaves out. */
uint32_t build_chosen_begin(const struct fusee_instance *chooser, struct kernel_names *,
			    const struct collector *, const struct dict_entry *stack);
#endif
