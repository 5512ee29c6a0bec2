/* SPDX-License-Identifier: Apache-2.0 */
/* What the worker, the opener and the fetcher give up alike, each before its filter of system
 * calls. */
#ifndef SANDBOX_CONFINE_H
#define SANDBOX_CONFINE_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define CONFINE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CONFINE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the sandbox knows no system calls of this machine"
#endif

/* Ends with the agent, gains no rights by what it executes, hides its memory from other processes,
 * and drops all capabilities but those of the mask, by the bits of capabilities(7). 0 or -errno. */
int confine_rights(uint64_t kept);
/* Leaves standard error: a terminal could be read and written to, and a process that hangs would
 * keep waiting who reads a pipe to its end. Not with sanitizers. 0 or -errno. */
int confine_stderr(void);
/* No core file, 64 descriptors, files of so many bytes, so much memory of its own (which sanitizers
 * need more of: not limited there). 0 or -errno. */
int confine_limits(uint64_t file_bytes, uint64_t memory_bytes);
/* A Landlock ruleset, -ENOSYS without Landlock, or -errno. It handles all rights on files that the
 * kernel knows, which *fs receives, those of the mask on ports, and both scopes. */
int confine_ruleset(uint64_t ports, uint64_t *fs);
/* Allows what is beneath the path; what is not there needs no rule. */
void confine_allow(int ruleset, const char *path, uint64_t rights);
/* Takes what the ruleset does not allow, and closes it. 0 or -errno. */
int confine_files(int ruleset);
/* Filters the system calls, also of threads that a library started. 0 or -errno. */
int confine_calls(struct sock_filter *, size_t n);
#endif
