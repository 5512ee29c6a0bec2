/* SPDX-License-Identifier: Apache-2.0 */
#include "process/stopped_thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/procfs.h"

#define SPIN_NS 200000u /* a thread that can stop does so within microseconds */
#define POLL_NS 200000
#define USER_CS 0x33u /* code segment of 64-bit programs */

/* Whether it is the main thread of a child of this process, whose end
 * another call of waitpid() is to see. */
static bool is_own_child(pid_t tid)
{
	return !syscall(SYS_tgkill, tid, tid, 0) && procfs_is_own(tid);
}

/* 0: it has stopped; -EAGAIN: not yet; -ESRCH: it has ended. */
static int look(struct stopped_thread *t)
{
	siginfo_t info = {.si_pid = 0};
	int status;

	if (waitid(P_PID, (id_t)t->tid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL))
		return errno == EINTR ? -EAGAIN : -ESRCH;
	if (!info.si_pid)
		return -EAGAIN;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
		if (!is_own_child(t->tid))
			waitpid(t->tid, &status, __WALL | WNOHANG);
		return -ESRCH;
	}
	if (waitpid(t->tid, &status, __WALL | WNOHANG) != t->tid || !WIFSTOPPED(status))
		return -EAGAIN;
	/* A signal came first. It is delivered when the thread goes on. */
	t->signal = status >> 16 ? 0 : WSTOPSIG(status);
	return 0;
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

int stopped_thread_request(struct stopped_thread *t, pid_t tid)
{
	*t = (struct stopped_thread){.tid = tid};
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return -errno;
	t->from_ns = clock_now();
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL); /* fails if it ends, which a look shows */
	return 0;
}

int stopped_thread_poll(struct stopped_thread *t)
{
	int r = look(t);

	if (r)
		return r;
	r = read_registers(t);
	if (r)
		stopped_thread_end(t);
	return r;
}

int stopped_thread_wait(struct stopped_thread *t, uint64_t deadline_ns)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};

	for (;;) {
		int r = stopped_thread_poll(t);
		uint64_t now = clock_now();

		if (r != -EAGAIN)
			return r;
		if (now >= deadline_ns)
			return -ETIMEDOUT;
		if (now < t->from_ns + SPIN_NS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
}

int stopped_thread_begin(struct stopped_thread *t, pid_t tid, uint64_t deadline_ns)
{
	int r = stopped_thread_request(t, tid);

	return r ? r : stopped_thread_wait(t, deadline_ns);
}

uint64_t stopped_thread_end(struct stopped_thread *t)
{
	ptrace(PTRACE_DETACH, t->tid, NULL, (long)t->signal);
	return clock_now() - t->from_ns;
}
