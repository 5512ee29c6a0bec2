/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of other processes' threads. For one thread. */
#ifndef STOP_THREAD_CLOCK_H
#define STOP_THREAD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where a thread's CPU time is read. The descriptor is of this thread for ever, also when its id is
 * another's. */
struct thread_clock {
	pid_t pid, tid;
	int fd; /* -1: opened at each read */
};

/* keep: the descriptor stays open, if there is one to be had. */
void thread_clock_open(struct thread_clock *, pid_t pid, pid_t tid, bool keep);
void thread_clock_close(struct thread_clock *);
/* CPU time of the thread in ns, for how long it waited for a CPU, and how
 * often it got one; unchanged, where the kernel does not
 * say that. The kernel adds to it when the thread leaves its CPU, as it does
 * for a stop, and at each tick of its own clock (1 to 10 ms). 0; -ESRCH: the thread has ended;
 * -errno.
 */
int thread_clock_read(const struct thread_clock *, uint64_t *ns, uint64_t *waited_ns,
		      uint64_t *runs);
/* CPU time of all threads of the process that are or were, in ns, as of now. 0 or -ESRCH. */
int process_clock_read(pid_t pid, uint64_t *ns);
/* Does the thread run, or wait for a CPU? */
bool thread_runs(pid_t pid, pid_t tid);
#endif
