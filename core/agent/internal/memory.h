/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the memory that the agent and its workers may use: a third for the agent's own budgets, a
 * third for the workers; nearly a third stays free. */
#ifndef AGENT_MEMORY_H
#define AGENT_MEMORY_H

#include <stdint.h>

/* Configures malloc() to return freed memory to the system soon. To be called before other threads
 * are created. */
void memory_prepare(void);
/* Returns the pages of all freed memory to the system. Takes some milliseconds. */
void memory_trim(void);
/* The memory limit of this process's control group and those above it, in bytes; without a limit
 * the machine's memory. */
uint64_t memory_available(void);
/* The smallest limit of a control group and those above it. sys: "/sys/fs/cgroup". UINT64_MAX: they
 * have none. */
uint64_t memory_limit_of(const char *sys, const char *cgroup);
/* The limit of the worker of clean files, in bytes. The other workers get fractions of it; all five
 * together two and a half times as much. */
uint64_t memory_of_worker(uint64_t available);
/* The limit of the data about code without files, such as functions of scripts, in bytes. */
uint64_t memory_of_code(uint64_t available);
#endif
