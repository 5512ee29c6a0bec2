/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs are online; they may go and come back. */
#ifndef EVENTS_CPUS_H
#define EVENTS_CPUS_H

#include <stdbool.h>
#include <stdint.h>

enum { CPUS_MAX = 8192 }; /* as the kernel's NR_CPUS */

struct cpus {
	uint64_t bits[CPUS_MAX / 64];
};

/* Those of a list such as "0-3,6", up to what is none. */
void cpus_parse(struct cpus *, const char *list);
/* The kernel's list of those that are online, to be read over and over: to open it costs five times
 * what to read does. A descriptor, the caller's; or -errno, which is fine for cpus_read(). */
int cpus_open(void);
/* Those that are online now; where that can't be read, as many as there are. */
void cpus_read(struct cpus *, int fd);
bool cpus_has(const struct cpus *, int number);
void cpus_remove(struct cpus *, int number);
/* One more than the last one's number; 0: there is none. */
int cpus_end(const struct cpus *);
#endif
