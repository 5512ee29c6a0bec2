/* SPDX-License-Identifier: Apache-2.0 */
/* A loss in the comments of a pprof file: "fusee: lost 12 samples: ring full". pprof_decode() reads
 * it back. */
#ifndef PROFILE_LOSS_COMMENT_H
#define PROFILE_LOSS_COMMENT_H

#include <stdbool.h>

#include <fusee/profile.h>

#include "base/buf.h"
#include "loss/loss.h"

/* The stage of a loss of a profile. */
enum loss_stage pprof_loss_stage(const struct fusee_label *);
void pprof_loss_write(struct buf *, const struct fusee_label *);
/* false: not the comment of a loss. *reason points into it. Comments of earlier versions, which
 * name no stage, are read too. */
bool pprof_loss_read(const char *comment, enum loss_stage *, int64_t *n, const char **reason);
#endif
