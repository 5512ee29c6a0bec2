/* SPDX-License-Identifier: Apache-2.0 */
/* Merges profiles. */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include "profile/builder.h"

/* Adds n profiles, at least 1, to an empty builder. Types, period and start are those of the first
 * profile; durations are added up. 0; -ENOMEM; -EINVAL: profile *odd has other types. */
int merge_profiles(struct builder *b, const struct fusee_profile *const *profiles, uint32_t n,
		   uint32_t *odd);
#endif
