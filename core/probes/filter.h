/* SPDX-License-Identifier: Apache-2.0 */
/* Which hits of a probe count, by an argument of the function. For one thread. */
#ifndef PROBES_FILTER_H
#define PROBES_FILTER_H

#include "../../bpf/probe_maps.h"

/* Reads "arg0 > 4096", "(int32)arg1 == -1", "arg2 & 0x40". 0; -EINVAL with a sentence in *why,
 * malloc'ed or NULL. */
int filter_parse(const char *text, struct probe_filter *, char **why);
#endif
