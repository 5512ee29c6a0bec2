/* SPDX-License-Identifier: Apache-2.0 */
/* What profiles show of waits. */
#ifndef PROFILER_BUILD_WAITS_H
#define PROFILER_BUILD_WAITS_H

#include <stdint.h>

#include "pipeline/collector.h"

struct kernel_names;

/* The label of sample_key.wait. Static. */
const char *build_wait_state(uint32_t wait);
/* How many of the first frames of a stack, an entry of collector.stacks, are of the interrupt in
 * which it was taken, and not of the wait. */
uint32_t build_wait_begin(struct kernel_names *, const struct collector *,
			  const struct dict_entry *stack);
#endif
