/* SPDX-License-Identifier: Apache-2.0 */
/* Several profiles as one. */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include "profile/builder.h"

/* Fills b with all of them: n is at least 1. The first one gives types, period and start; durations
 * add up. -EINVAL: one of them has other types, its index in *odd. */
int merge_profiles(struct builder *b, const struct fusee_profile *const *profiles, uint32_t n,
		   uint32_t *odd);
#endif
