/* SPDX-License-Identifier: Apache-2.0 */
/* The samplers that choose samples, where there are some. */
#ifndef PROFILER_CHOOSER_H
#define PROFILER_CHOOSER_H

#include <stdbool.h>

#include "profiler/profiler.h"

/* Makes their instances. 0, or an exit code of sysexits.h after one error was logged. */
int choosers_open(struct profiler *, const struct profiler_options *);
/* All samples are chosen by them. */
bool chooser_takes_all(const struct profiler_options *);
/* What a command counts is seen from its exec on: the kernel selects it then. Its times begin only
 * when it runs: it has waited for fusee before. *ret: the periods of samplers that count. Are there
 * some, and a command? */
bool choosers_count_from_exec(const struct profiler *, const struct profiler_options *,
			      struct wait_periods *ret);
#endif
