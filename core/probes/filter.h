/* SPDX-License-Identifier: Apache-2.0 */
/* Which hits of a probe count, by an argument or by what a call returns. For one thread. */
#ifndef PROBES_FILTER_H
#define PROBES_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "../../bpf/probe_maps.h"

/* What a filter may name: so many arguments; timed: also what a call returns, and its ns;
 * described: arguments whose types become known later. */
struct filter_terms {
	uint32_t arguments;
	bool timed, described;
};

/* Reads "arg0 > 4096", "(int32)arg1 == -1", "arg2 & 0x40", "(int64)retval < 0", "ns > 1000000". 0;
 * -EINVAL with a sentence in *why, malloc'ed or NULL. */
int filter_parse(const char *text, const struct filter_terms *, struct probe_filter *, char **why);
/* Where the filter's argument is, and which type it has unless the filter says one. 0; -EINVAL: the
 * type has no such number; *why likewise. */
int filter_describe(struct probe_filter *, const struct probe_operand *, char **why);
#endif
