/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room read of what was found. */
#ifndef RECORD_INTERNAL_FOUND_H
#define RECORD_INTERNAL_FOUND_H

#include "record/found.h"

/* Plugins that could not be started, or found nothing in time. */
uint32_t found_failed(const struct found *);
struct targets *found_targets(struct found *); /* borrowed */
#endif
