/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of running targets before the first sample: also of what allocates. */
#ifndef PROFILER_PREPARE_H
#define PROFILER_PREPARE_H

#include <stdbool.h>

struct profiler;

/* Whether a signal that ends the command has come, which its loop reads as soon as it runs. */
bool prepare_is_interrupted(void);

/* Has files of run times inspected that these programs load from where they lie: strings, then "".
 * The target is a held command. */
void prepare_expected(struct profiler *, const char *programs);
#endif
