/* SPDX-License-Identifier: Apache-2.0 */
/* A loss as a comment of a pprof file: "fusee: lost 12 samples: ring full". */
#ifndef LOSS_COMMENT_H
#define LOSS_COMMENT_H

#include <stdbool.h>

#include <fusee/profile.h>

#include "base/buf.h"
#include "loss/loss.h"

/* The stage of a loss of a profile, by its `str`, else by its reason. LOSS_STACK for reasons of
 * plugins. */
enum loss_stage loss_stage_of(const struct fusee_label *);
void loss_comment_write(struct buf *, const struct fusee_label *);
/* false: not the comment of a loss. *reason points into it. Also reads comments of earlier
 * versions, which name no stage. */
bool loss_comment_read(const char *comment, enum loss_stage *, int64_t *n, const char **reason);
#endif
