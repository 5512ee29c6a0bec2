/* SPDX-License-Identifier: Apache-2.0 */
/* Works on targets in a child process. A system call that a target blocks may never end, not even
 * by a signal; the caller can continue without the child, but could not end without a thread of its
 * own. */
#ifndef DUMP_GUARDED_H
#define DUMP_GUARDED_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Runs work(arg) in a child, whose standard output is `out` and whose standard error is copied to
 * the caller's. `beats` is memory that both share: the work increments it at each of its steps. If
 * it does not for patience_ns, the child is killed. The exit code of the child, which is what
 * work() returns; -ETIMEDOUT: it was killed; -ECHILD: it ended by a signal; -errno. For a process
 * with one thread.
 */
int guarded_run(int (*work)(void *arg), void *arg, int out, const _Atomic uint32_t *beats,
		uint64_t patience_ns);
#endif
