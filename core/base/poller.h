/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that is readable when one of several is, or when a time has come. For objects that
 * another loop waits for; their owner then looks at everything that may have changed. [one thread]
 */
#ifndef BASE_POLLER_H
#define BASE_POLLER_H

#include <stdint.h>

struct poller {
	int epoll, timer; /* epoll is what is waited for */
};

/* 0 or -errno; poller_close() is called after both. */
int poller_open(struct poller *);
/* Both descriptors of a poller that is not open are -1. */
void poller_close(struct poller *);
/* Also readable when this descriptor is. 0 or -errno. */
int poller_add(struct poller *, int fd);
void poller_remove(struct poller *, int fd);
/* The next time, of CLOCK_MONOTONIC in ns, in place of the last; 0: none. */
void poller_set(struct poller *, uint64_t at);
/* Not readable any more because of a time that has come. */
void poller_clear(struct poller *);
#endif
