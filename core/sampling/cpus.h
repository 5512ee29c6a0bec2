/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs are online; they may go and come back. */
#ifndef SAMPLING_CPUS_H
#define SAMPLING_CPUS_H

#include <stdbool.h>
#include <stdint.h>

enum { CPUS_MAX = 8192 }; /* as the kernel's NR_CPUS */

struct cpus {
	uint64_t bits[CPUS_MAX / 64];
};

/* Those of a list such as "0-3,6", up to what is none. */
void cpus_parse(struct cpus *, const char *list);
/* Those that are online; where that can't be read, as many as there are. */
void cpus_online(struct cpus *);
bool cpus_has(const struct cpus *, int number);
#endif
