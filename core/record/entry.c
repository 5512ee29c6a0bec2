/* SPDX-License-Identifier: Apache-2.0 */
#include "record/internal/entry.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "events/probe.h"

#define TIMEOUT_NS 2000000000u
#define POLL_NS 200000

bool entry_seize(pid_t child)
{
	/* Without this capability a traced setuid program runs without its rights. */
	if (!(probe_caps() >> CAP_SYS_PTRACE & 1))
		return false;
	return !ptrace(PTRACE_SEIZE, child, NULL, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
}

/* Waits for the next stop. false: the child has ended (and can still be waited for), or the time is
 * over. */
static bool next_stop(pid_t pid, uint64_t until, int *status)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	siginfo_t info;

	while (clock_now() < until) {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT))
			return false;
		if (info.si_pid && info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
			return false;
		if (info.si_pid)
			return waitpid(pid, status, __WALL) == pid;
		nanosleep(&pause, NULL);
	}
	return false;
}

static uint64_t entry_of(pid_t pid)
{
	Elf64_auxv_t aux[64];
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, aux, sizeof(aux));
	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(aux[0]); i++)
		if (aux[i].a_type == AT_ENTRY)
			return aux[i].a_un.a_val;
	return 0;
}

/* A breakpoint of ptrace() stays with its thread as a disabled event, which costs time at each of
 * its context switches (1.6 us on Linux 6.18); an event of our own goes when it is closed. */
static int open_breakpoint(pid_t pid, uint64_t at)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = at,
		.bp_len = sizeof(long),
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.remove_on_exec = 1, /* needed by sigtrap, which is of Linux 5.13 */
		.sigtrap = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* For older kernels. At 0: removes it. */
static bool poke_breakpoint(pid_t pid, uint64_t at)
{
	if (at && ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[0]), at))
		return false;
	return !ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]),
		       at ? 1l : 0l /* local, one byte, when it is executed */);
}

static bool is_at(pid_t pid, uint64_t at)
{
	struct user_regs_struct regs;

	return !ptrace(PTRACE_GETREGS, pid, NULL, &regs) && regs.rip == at;
}

static bool is_exec(int status)
{
	return status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
}

/* The signal that stopped the child and is still to be delivered to it; 0: none. */
static int signal_of(int status)
{
	return status >> 16 ? 0 : WSTOPSIG(status);
}

/* Lets the child run to its entry point. true: it is stopped there, or after another exec. false:
 * it has ended, or the time is over and it may be running. */
static bool run_to(pid_t pid, uint64_t entry, uint64_t until)
{
	int status, signal = 0;

	for (;;) {
		if (ptrace(PTRACE_CONT, pid, NULL, (long)signal) || !next_stop(pid, until, &status))
			return false;
		if (is_exec(status) || (signal_of(status) == SIGTRAP && is_at(pid, entry)))
			return true;
		signal = signal_of(status);
	}
}

/* The same of a child that is let go: a SIGTRAP is of the breakpoint, which came late. */
static int last_signal_of(int status)
{
	return signal_of(status) == SIGTRAP ? 0 : signal_of(status);
}

/* Stops the child. Returns the signal to deliver when it goes on, 0: none; -1: it has ended, or
 * does not stop. */
static int halt(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) ||
	    !next_stop(pid, clock_now() + TIMEOUT_NS, &status))
		return -1;
	return last_signal_of(status);
}

/* Returns as halt() when the child is ready to go on. */
static int pass(pid_t pid, void (*ready)(void *arg), void *arg, bool *reached)
{
	uint64_t until = clock_now() + TIMEOUT_NS;
	int status, signal = 0, event;
	uint64_t entry;

	do {
		if (!next_stop(pid, until, &status))
			return -1;
		if (!is_exec(status))
			ptrace(PTRACE_CONT, pid, NULL, (long)signal_of(status));
	} while (!is_exec(status));
	ready(arg);
	entry = entry_of(pid);
	event = entry ? open_breakpoint(pid, entry) : -1;
	if (entry && (event >= 0 || poke_breakpoint(pid, entry))) {
		if (run_to(pid, entry, clock_now() + TIMEOUT_NS)) {
			ready(arg);
			*reached = is_at(pid, entry);
		} else {
			signal = halt(pid);
		}
		if (event >= 0)
			close(event);
		else if (signal >= 0)
			poke_breakpoint(pid, 0);
	}
	return signal;
}

bool entry_pass(pid_t pid, const struct entry_calls *calls, void *arg, bool *traced)
{
	bool reached = false;
	int signal = pass(pid, calls->ready, arg, &reached);

	calls->go_on(arg);
	*traced = signal < 0 || ptrace(PTRACE_DETACH, pid, NULL, (long)signal);
	return reached;
}

bool entry_release(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};
	int status;

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT))
		return true;
	if (!info.si_pid)
		return false;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return true;
	if (waitpid(pid, &status, __WALL) != pid)
		return true;
	poke_breakpoint(pid, 0);
	return !ptrace(PTRACE_DETACH, pid, NULL, (long)last_signal_of(status));
}
