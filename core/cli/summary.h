/* SPDX-License-Identifier: Apache-2.0 */
/* What `record` says at its end. */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include "cli/session.h"

/* Prints what came out: losses, hottest functions, files with few symbols. symbolizing_s: how long
 * the profile took to build, in seconds. */
void summary_print(struct session *, const struct fusee_profile *, double symbolizing_s);
/* Writes the account as JSON to a file. 0 or -errno. */
int summary_stats(struct session *, const char *path);
/* Adds losses and truncated stacks to the profile. */
void summary_losses(struct session *, struct builder *);
#endif
