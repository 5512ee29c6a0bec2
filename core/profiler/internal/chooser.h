/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler that chooses samples, where there is one. */
#ifndef PROFILER_CHOOSER_H
#define PROFILER_CHOOSER_H

#include <stdbool.h>

#include "profiler/profiler.h"

/* Makes its instance. 0, or an exit code of sysexits.h after one error was logged. */
int chooser_open(struct profiler *, const struct profiler_options *);
/* All samples are chosen by it. */
bool chooser_takes_all(const struct profiler_options *);
/* What a command counts is seen from its exec on: the kernel selects it then. Its times begin only
 * when it runs: it has waited for fusee before. */
bool chooser_counts_from_exec(const struct profiler *, const struct profiler_options *);
#endif
