/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the agent and its workers may have, and how it is shared: a third for the agent's
 * own budgets, a third for the workers; nearly a third stays free. */
#ifndef AGENT_MEMORY_H
#define AGENT_MEMORY_H

#include <stdint.h>

/* Has what is freed returned to the system soon. For the agent's main(), before other threads. */
void memory_prepare(void);
/* Returns the pages of all that is freed by now. Some milliseconds. */
void memory_trim(void);
/* Bytes that this process's control group may use, those above it included; or that the machine
 * has. */
uint64_t memory_available(void);
/* The smallest limit of a control group and those above it. sys: "/sys/fs/cgroup". UINT64_MAX: they
 * have none. */
uint64_t memory_limit_of(const char *sys, const char *cgroup);
/* The limit of the worker of clean files, in bytes; the other workers have parts of it, and all
 * five together two and a half times as much. */
uint64_t memory_of_worker(uint64_t available);
/* The limit of what is known of code without files, as the functions of scripts, in bytes. */
uint64_t memory_of_code(uint64_t available);
#endif
