/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of what the BPF programs of one CPU send, in an agent: apart from the CPU's events, so
 * that sideband takes no sample's room. It is small while little is sent. A ring has the size with
 * which it was mapped, so a larger one takes its place: the programs write into the new ring from
 * then on, and the old ring is read until it is empty. All records have a time, by which they are
 * handed over.
 */
#ifndef EVENTS_OUTPUT_RING_H
#define EVENTS_OUTPUT_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "events/internal/ring.h"

#define OUTPUT_LEAST (128u << 10) /* two of the largest stack copies */
#define OUTPUT_CALM_NS 30000000000u

struct output_ring {
	/* Two rings, either of them zeros. What is in the first was written before it was
	 * exchanged. Also in the order of records that have the same time: before those of the
	 * CPU's events. */
	struct ring before, ring;
	int before_fd;
	uint64_t exchanged; /* when `before` became so, or could not, CLOCK_MONOTONIC ns */
	uint64_t needed;    /* when records were last seen that need a large ring, likewise */
	/* Since the last output_ring_want(): the most bytes that were unread, and whether the
	 * programs had no room for a copy. */
	uint64_t fullest;
	bool refused;
};

/* Reads the kernel's heads. Returns the share of the ring that is unread, 0 to 1. */
double output_ring_refresh(struct output_ring *);
/* The bytes that the ring is to have: `most` at once when it is half full or has refused a copy;
 * OUTPUT_LEAST after OUTPUT_CALM_NS in which such a ring would not have been half full. */
uint64_t output_ring_want(struct output_ring *, uint64_t most, uint64_t now);
/* The new ring takes the place of that of fd, which is taken over; the old ring is read until it
 * is empty. */
void output_ring_exchange(struct output_ring *, const struct ring *new, int fd, uint64_t now);
/* Whether the ring may be exchanged: not while there are two, nor soon after a try. */
bool output_ring_may_exchange(const struct output_ring *, uint64_t now);
/* Closes the ring that was exchanged, if it is empty and nothing can be written there any more. */
void output_ring_end_before(struct output_ring *, uint64_t now);
void output_ring_close(struct output_ring *); /* but not the ring's descriptor */
#endif
