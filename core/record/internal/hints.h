/* SPDX-License-Identifier: Apache-2.0 */
/* What a user can do at the end of a recording that shows less than it could. */
#ifndef RECORD_HINTS_H
#define RECORD_HINTS_H

#include "record/session.h"

/* Prints each hint once, with a command: nothing sampled, samples lost or truncated, functions
 * without names, files without symbols. */
void hints_print(struct session *, const struct session_account *, const struct fusee_profile *);
#endif
