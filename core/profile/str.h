/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a profile. [any thread] */
#ifndef PROFILE_STR_H
#define PROFILE_STR_H

#include "base/str.h"

/* The string with an index that was checked. */
static inline struct fusee_str str_at(const struct fusee_profile *p, uint32_t i)
{
	return *FUSEE_AT(struct fusee_str, p->strings, i);
}
#endif
