/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time and the memory of the agent's own processes. */
#ifndef AGENT_USAGE_H
#define AGENT_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* User and system time of this process, or of its workers that have ended. */
double usage_cpu_seconds(bool workers);
/* Resident memory of this process. 0: /proc is not readable. */
uint64_t usage_resident_bytes(void);
/* Memory that was allocated and not freed; without what the allocator keeps of freed memory. */
uint64_t usage_heap_bytes(void);
#endif
