/* SPDX-License-Identifier: Apache-2.0 */
/* Work on targets in a process of its own: a call of the kernel that a target keeps waiting may not
 * end, not even by a signal: then the caller goes on without the process, as it could not without a
 * thread. */
#ifndef DUMP_GUARDED_H
#define DUMP_GUARDED_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Runs work(arg) in a child, whose standard output is `out` and whose standard error is copied to
 * the own. `beats` is memory that both share: the work increments it at each of its steps. If it
 * does not for patience_ns, the child is killed. The exit code of the child, which is what work()
 * returns; -ETIMEDOUT: it was killed; -ECHILD: it ended by a signal; -errno. For a process with one
 * thread.
 */
int guarded_run(int (*work)(void *arg), void *arg, int out, const _Atomic uint32_t *beats,
		uint64_t patience_ns);
#endif
