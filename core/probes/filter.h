/* SPDX-License-Identifier: Apache-2.0 */
/* Which hits of a probe count, by an argument or by what a call returns. For one thread. */
#ifndef PROBES_FILTER_H
#define PROBES_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "../../bpf/probe_maps.h"

/* Reads "arg0 > 4096", "(int32)arg1 == -1", "arg2 & 0x40", of so many arguments; timed: also
 * "(int64)retval < 0", "ns > 1000000". 0; -EINVAL with a sentence in *why, malloc'ed or NULL. */
int filter_parse(const char *text, uint32_t arguments, bool timed, struct probe_filter *,
		 char **why);
#endif
