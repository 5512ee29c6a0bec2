/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops one thread of another process by ptrace(2) while its registers and memory are read. The
 * stopped thread gets no signal. If the thread that stopped it ends, the kernel lets it go on.
 * x86-64. [any thread, the same for a stop and its end]
 */
#ifndef PROCESS_STOPPED_THREAD_H
#define PROCESS_STOPPED_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stopped_thread {
	pid_t tid;
	int signal;        /* to be delivered when it goes on; 0: none */
	uint64_t from_ns;  /* CLOCK_MONOTONIC: when it was requested to stop */
	uint64_t regs[17]; /* by DWARF number */
	uint64_t tls;      /* base of fs */
	bool in_syscall;   /* it was in a system call */
	bool is_32_bit;
};

/*
 * Stops the thread. 0; -ESRCH: it has ended; -EPERM: no right to, or it is traced already;
 * -ETIMEDOUT: it did not stop until deadline_ns (CLOCK_MONOTONIC), as in uninterruptible sleep. It
 * may stop later, which stopped_thread_poll() shows, and goes on when the calling thread ends.
 */
int stopped_thread_begin(struct stopped_thread *, pid_t tid, uint64_t deadline_ns);
/* The same in two parts, so that the caller can do other work in between. After a request that
 * returned 0 the thread is to be polled until it has stopped or ended. */
int stopped_thread_request(struct stopped_thread *, pid_t tid);
int stopped_thread_wait(struct stopped_thread *, uint64_t deadline_ns);
/* 0: it has stopped; -EAGAIN: not yet; -ESRCH: it has ended. */
int stopped_thread_poll(struct stopped_thread *);
/* Lets it go on. Returns how long it was stopped at most, in ns. */
uint64_t stopped_thread_end(struct stopped_thread *);
#endif
