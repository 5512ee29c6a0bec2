/* SPDX-License-Identifier: Apache-2.0 */
/* A profile in parts, for backends that refuse large ones. */
#ifndef PROFILE_SPLIT_H
#define PROFILE_SPLIT_H

#include <stdint.h>

#include <fusee/profile.h>

/*
 * Parts of p in the order of its samples: at most max_samples samples each, and at most about
 * max_bytes as uncompressed pprof (0: no limit; a part has one sample at least). A part has only
 * what its samples need; types, times, comments and resource are in each, losses in the first one.
 * Its id follows from p's and from which samples it has, so it is the same at each attempt; a
 * profile that needs no splitting is handed on as it is. A part lives until each() returns.
 *
 * Stops at the first each() that returns not 0 and returns that. -EINVAL: the profile has an index
 * that leads nowhere; -ENOMEM.
 */
int profile_split(const struct fusee_profile *p, uint64_t max_samples, uint64_t max_bytes,
		  int (*each)(void *arg, const struct fusee_profile *part), void *arg);
#endif
