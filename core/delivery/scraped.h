/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile that a server has made of itself: decoded and checked once, then delivered to each sink
 * with the labels that the sink's rules make of the server's. The sinks share its tables.
 */
#ifndef DELIVERY_SCRAPED_H
#define DELIVERY_SCRAPED_H

#include <stdint.h>

#include <fusee/plugin.h>

#include "delivery/sink_window.h"

#define SCRAPED_MAX_LABELS 32u
#define SCRAPED_MAX_TYPES 32u

struct scraped;

/* [any thread] Decodes the bytes, which may be hostile, within their limit. Everything is copied.
 * 0; -EINVAL: it is no profile, or a label is wrong; -EFBIG; -ENOMEM. *why: a static sentence. */
int scraped_new(struct scraped **ret, const struct fusee_pprof *, const char **why);
/* [any thread] The sinks that have it keep it. NULL is fine. */
void scraped_free(struct scraped *);
uint64_t scraped_bytes(const struct scraped *); /* of memory */
uint64_t scraped_samples(const struct scraped *);
/* Puts it into the sink's delivery, unless a rule of relabeling drops it: that is counted. 0 or
 * -errno. */
int scraped_put(struct scraped *, struct sink_window *);
/* The profile with the labels that the plan's instance gives it; the builder owns it. 0;
 * -ECANCELED: a rule drops it, *dropped says which; -ENOMEM. */
int scraped_build(struct scraped *, const struct plan_instance *, struct builder **ret,
		  const char **dropped);
#endif
