/* SPDX-License-Identifier: Apache-2.0 */
/* Is a profile what it says? One may come from a plugin. */
#ifndef PROFILE_CHECK_H
#define PROFILE_CHECK_H

#include <stdbool.h>

#include <fusee/profile.h>

/* Each index leads to an element and each table that must have an empty one has it: who reads it
 * needs no look of its own. */
bool profile_check(const struct fusee_profile *);
#endif
