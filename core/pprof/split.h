/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a profile, for backends that refuse large profiles. */
#ifndef PPROF_SPLIT_H
#define PPROF_SPLIT_H

#include <stdint.h>

#include <fusee/profile.h>

/*
 * Calls each() for parts of p, in the order of its samples: at most max_samples samples each, and
 * at most about max_bytes as uncompressed pprof (0: no limit; a part has at least one sample). A
 * part has only the strings, functions, mappings, locations and stacks that its samples need;
 * types, times, comments and resource are in each part, losses in the first. The id of a part is a
 * hash of p's id and of the numbers of its samples, and so the same at each attempt. A profile that
 * needs no splitting is passed as it is. A part is valid until each() returns.
 *
 * Returns the first result of each() that is not 0; -EINVAL: an index in p leads nowhere; -ENOMEM.
 */
int profile_split(const struct fusee_profile *p, uint64_t max_samples, uint64_t max_bytes,
		  int (*each)(void *arg, const struct fusee_profile *part), void *arg);
/* The number of samples that a profile, or a part of it, represents: the sum of the values of the
 * type "samples", or the number of entries if there is no such type. */
uint64_t profile_samples(const struct fusee_profile *);
#endif
