/* SPDX-License-Identifier: Apache-2.0 */
/* What a user can do at the end of a recording that shows less than it could. */
#ifndef RECORD_HINTS_H
#define RECORD_HINTS_H

#include "base/buf.h"
#include "record/internal/account.h"

/* Prints each hint once, with a command: nothing sampled, samples lost or truncated, functions
 * without names, files without symbols. */
void hints_print(struct session *, const struct session_account *, const struct fusee_profile *);
/* Appends the option with a server that is likely to have the debug file of this file, unless this
 * recording has used that server. false: no such server is known. */
bool debuginfod_hint(const struct session *, const char *path, struct buf *);
#endif
