/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs are online. It may change at any time. */
#ifndef EVENTS_CPUS_H
#define EVENTS_CPUS_H

#include <stdbool.h>
#include <stdint.h>

enum { CPUS_MAX = 8192 }; /* as the kernel's NR_CPUS */

struct cpus {
	uint64_t bits[CPUS_MAX / 64];
};

/* Parses a list such as "0-3,6", up to the first other character. */
void cpus_parse(struct cpus *, const char *list);
/* Opens the kernel's list of online CPUs, to be read repeatedly: opening it costs five times as
 * much as reading. Returns a descriptor that the caller closes, or -errno, which cpus_read()
 * accepts. */
int cpus_open(void);
/* Reads which CPUs are online now; if that fails, all configured CPUs are. */
void cpus_read(struct cpus *, int fd);
bool cpus_has(const struct cpus *, int number);
void cpus_remove(struct cpus *, int number);
/* The highest number + 1; 0: there are none. */
int cpus_end(const struct cpus *);
#endif
