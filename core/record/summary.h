/* SPDX-License-Identifier: Apache-2.0 */
/* The summary that `record` prints at its end. */
#ifndef RECORD_SUMMARY_H
#define RECORD_SUMMARY_H

#include "base/buf.h"
#include "record/session.h"

/* Prints losses, the hottest functions and files with few symbols. symbolizing_s: how long the
 * profile took to build, in seconds. */
void summary_print(struct session *, const struct fusee_profile *, double symbolizing_s);
/* Appends the account as JSON. 0 or -errno. */
int summary_stats(struct session *, struct buf *);
/* Adds losses and truncated stacks to the profile. */
void summary_losses(struct session *, struct builder *);
#endif
