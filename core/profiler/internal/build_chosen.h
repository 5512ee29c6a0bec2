/* SPDX-License-Identifier: Apache-2.0 */
/* What profiles show of the samples that a sampler has chosen, and of hits; and their types. */
#ifndef PROFILER_BUILD_CHOSEN_H
#define PROFILER_BUILD_CHOSEN_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

#include "pipeline/collector.h"
#include "pipeline/followed.h"
#include "plugin/plugin.h"

struct build_options;
struct builder;
struct kernel_names;

/* Adds the types of values. Returns that of the weights, static or of the options, with its unit.
 */
const char *build_types(struct builder *, const struct build_options *, const struct chooser_set *,
			const char **unit);
/* The most of them: samples, CPU time, and those of samplers. */
#define BUILD_MAX_TYPES (2u + PLUGIN_MAX_SAMPLERS)
/* Which of them the sample's weight is a value of. */
uint32_t build_column(const struct build_options *, const struct sample_key *);
/* The values of a sample, and what of it is in use, where that is followed. */
void build_values(const struct build_options *, const struct sample_key *,
		  const struct sample_sum *, const struct followed_sum *,
		  int64_t values[BUILD_MAX_TYPES]);
/* The label of sample_key.part. false: it has none. */
bool build_chosen_label(const struct chooser_set *, const struct sample_key *,
			struct fusee_label *ret);
/* How many of the first frames of a stack, an entry of collector.stacks, are of the interrupt in
 * which it was taken and of what the sampler (NULL: none) leaves out, or of the call of a program
 * at a raw tracepoint, if that is the event. */
uint32_t build_chosen_begin(const struct fusee_sampler_ops *, const char *event,
			    struct kernel_names *, const struct collector *,
			    const struct dict_entry *stack);
#endif
