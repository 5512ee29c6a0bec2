/* SPDX-License-Identifier: Apache-2.0 */
/* The host calls of one consume(): encoded bytes of its profile, parts of it, the time of the next
 * attempt. On the sink's thread. Also its open_file(), for any thread. */
#ifndef DELIVERY_SINK_OUT_H
#define DELIVERY_SINK_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

#include "base/buf.h"

#define DELIVERY_FORMATS (FUSEE_FOLDED + 1)

/* A profile's bytes by format; kept for further attempts. */
struct delivery_encoded {
	struct buf bytes[DELIVERY_FORMATS];
	bool made[DELIVERY_FORMATS];
};

struct fusee_sink_out {
	const struct fusee_profile *profile;
	struct delivery_encoded *encoded; /* of profile; borrowed */
	struct buf *others;               /* bytes of parts of the profile; freed after consume() */
	uint32_t nothers;
	bool retry_named;     /* the sink called retry_after() */
	bool denied;          /* the sink called denied() */
	bool lost;            /* the sink called lost() */
	uint64_t samples;     /* of the parts that are lost */
	uint64_t retry_after; /* ns */
};

void sink_out_fini(struct fusee_sink_out *);
void delivery_encoded_fini(struct delivery_encoded *);
uint64_t delivery_encoded_bytes(const struct delivery_encoded *); /* memory in bytes */
#endif
