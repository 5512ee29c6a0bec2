/* SPDX-License-Identifier: Apache-2.0 */
/* A hint at the children of the processes of -p. */
#ifndef RECORD_CHILDREN_H
#define RECORD_CHILDREN_H

#include <stdbool.h>

#include "base/buf.h"
#include "record/session.h"

/* Appends it where such children ran before the recording began; later children are sampled. false:
 * there is nothing to say. */
bool children_hint(const struct session *, struct buf *);
#endif
