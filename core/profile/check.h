/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a profile that may come from a plugin. */
#ifndef PROFILE_CHECK_H
#define PROFILE_CHECK_H

#include <stdbool.h>

#include <fusee/profile.h>

/* Each index leads to an element, and each table that must have an empty element 0 has it: readers
 * need no checks of their own. */
bool profile_check(const struct fusee_profile *);
#endif
