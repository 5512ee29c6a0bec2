/* SPDX-License-Identifier: Apache-2.0 */
/* What a sink's consume() may call, for one profile on its way out. On the delivery's thread. */
#ifndef DELIVERY_SINK_OUT_H
#define DELIVERY_SINK_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

#include "base/buf.h"

#define DELIVERY_FORMATS (FUSEE_FOLDED + 1)

/* A profile's bytes, by format: kept over attempts. */
struct delivery_encoded {
	struct buf bytes[DELIVERY_FORMATS];
	bool made[DELIVERY_FORMATS];
};

struct fusee_sink_out {
	const struct fusee_profile *profile;
	struct delivery_encoded *encoded; /* the profile's */
	struct buf *others;               /* bytes of its parts: until consume() returns */
	uint32_t nothers;
	bool retry_named;
	uint64_t retry_after;
};

void sink_out_fini(struct fusee_sink_out *);
void delivery_encoded_fini(struct delivery_encoded *);
uint64_t delivery_encoded_bytes(const struct delivery_encoded *);
#endif
