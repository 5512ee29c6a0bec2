/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles that discoveries hand over from their own threads, which servers have made of
 * themselves: decoded one after the other on the discovery's thread, put into the sinks' deliveries
 * by the control thread.
 */
#ifndef DELIVERY_SCRAPES_H
#define DELIVERY_SCRAPES_H

#include "delivery/scraped.h"
#include "net/loop.h"

#define SCRAPES_MAX_WAITING (64ull << 20) /* bytes of profiles that wait for the control thread */

struct scrapes;

/* deliver(arg, ..) is called on the loop's thread with each profile, and may keep it until it
 * returns. Borrows the loop. 0 or -ENOMEM. */
int scrapes_new(struct scrapes **ret, struct loop *, void (*deliver)(void *arg, struct scraped *),
		void *arg);
/* [any thread, may block] profile() of struct fusee_discovery_host. arg: struct scrapes. */
int scrapes_take(void *arg, const struct fusee_pprof *, char *why, uint32_t cap);
/* After the discoveries and before the loop are freed. NULL is fine. */
void scrapes_free(struct scrapes *);
#endif
