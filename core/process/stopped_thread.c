/* SPDX-License-Identifier: Apache-2.0 */
#include "process/stopped_thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

#define SPIN_NS 200000u /* a thread that can stop does so within microseconds */
#define POLL_NS 200000
#define USER_CS 0x33u /* code segment of 64-bit programs */

/* Waits for the stop. 0, -ESRCH or -ETIMEDOUT. */
static int wait_for_stop(struct stopped_thread *t, uint64_t deadline_ns)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	int status;

	for (;;) {
		pid_t r = waitpid(t->tid, &status, __WALL | WNOHANG);
		uint64_t now = clock_now();

		if (r == t->tid && WIFSTOPPED(status)) {
			/* A signal came first. It is delivered when the thread goes on. */
			t->signal = status >> 16 ? 0 : WSTOPSIG(status);
			return 0;
		}
		if (r == t->tid || (r < 0 && errno != EINTR))
			return -ESRCH;
		if (now >= deadline_ns)
			return -ETIMEDOUT;
		if (now < t->from_ns + SPIN_NS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
}

static int read_registers(struct stopped_thread *t)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &r))
		return -errno;
	t->regs[0] = r.rax;
	t->regs[1] = r.rdx;
	t->regs[2] = r.rcx;
	t->regs[3] = r.rbx;
	t->regs[4] = r.rsi;
	t->regs[5] = r.rdi;
	t->regs[6] = r.rbp;
	t->regs[7] = r.rsp;
	t->regs[8] = r.r8;
	t->regs[9] = r.r9;
	t->regs[10] = r.r10;
	t->regs[11] = r.r11;
	t->regs[12] = r.r12;
	t->regs[13] = r.r13;
	t->regs[14] = r.r14;
	t->regs[15] = r.r15;
	t->regs[16] = r.rip;
	t->tls = r.fs_base;
	t->in_syscall = (long long)r.orig_rax >= 0;
	t->is_32_bit = r.cs != USER_CS;
	return 0;
}

int stopped_thread_begin(struct stopped_thread *t, pid_t tid, uint64_t deadline_ns)
{
	int r;

	*t = (struct stopped_thread){.tid = tid};
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return -errno;
	t->from_ns = clock_now();
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return -errno;
	r = wait_for_stop(t, deadline_ns);
	if (r)
		return r;
	r = read_registers(t);
	if (r)
		stopped_thread_end(t);
	return r;
}

uint64_t stopped_thread_end(struct stopped_thread *t)
{
	ptrace(PTRACE_DETACH, t->tid, NULL, (long)t->signal);
	return clock_now() - t->from_ns;
}
