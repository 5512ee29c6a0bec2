/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that is readable while one of several descriptors is, or from a set time on. For an
 * object that another thread's or owner's loop polls; it then checks everything that may have
 * changed. [one thread]
 */
#ifndef BASE_POLLER_H
#define BASE_POLLER_H

#include <stdint.h>

struct poller {
	int epoll, timer; /* epoll: the descriptor to wait for */
};

/* 0 or -errno; poller_close() is called after both. */
int poller_open(struct poller *);
/* Both descriptors of a poller that is not open are -1. */
void poller_close(struct poller *);
/* Makes the poller readable while this descriptor is. 0 or -errno. */
int poller_add(struct poller *, int fd);
void poller_remove(struct poller *, int fd);
/* Replaces the time from which the poller is readable, in ns of CLOCK_MONOTONIC; 0: none. */
void poller_set(struct poller *, uint64_t at);
/* Ends the readability that an expired time caused. */
void poller_clear(struct poller *);
#endif
