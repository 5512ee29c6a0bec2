/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one thread in /proc: its name, whether it runs, for what it waits, its kernel stack.
 * Formats: proc(5). [any thread] */
#ifndef PROCESS_THREAD_STATE_H
#define PROCESS_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_state {
	pid_t tid;
	char comm[16];
	char state;      /* as in /proc/PID/stat: R S D T t Z X I */
	bool kernel;     /* a kernel thread */
	pid_t tracer;    /* that traces it; 0: none */
	char wchan[64];  /* the kernel function in which it waits; "": not known, or it runs */
	bool waits;      /* it is off its CPU, in a system call or an exception */
	uint64_t sp, pc; /* its user registers if it waits; 0: not readable */
	/* Lines of /proc/PID/task/TID/stack as "name" or "name [module]", innermost first; "": not
	 * readable, or it runs. */
	char stack[4096];
};

/* 0; -ESRCH: the thread has ended; or -errno. Members that are not readable are empty. */
int thread_state_read(pid_t pid, pid_t tid, struct thread_state *);
/* How often a thread was taken off its CPU: voluntarily, and not. 0; -EBUSY: it runs, or
 * is about to; or -errno. */
int thread_switches_read(pid_t pid, pid_t tid, uint64_t *voluntary, uint64_t *involuntary);
/* "sleeping", "running". Static. */
const char *thread_state_text(char state);
#endif
