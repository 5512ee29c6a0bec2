/* SPDX-License-Identifier: Apache-2.0 */
#include "stop/rights.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/procfs.h"

/* The kernel asks for the same right as for a stop, and looks for the memory, which is not there,
 * after that. */
int stop_may(pid_t pid)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {NULL, 1};

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) >= 0 || errno == EFAULT)
		return 0;
	return -errno;
}

int stop_try(void)
{
	pid_t child = fork();
	int r;

	if (child < 0)
		return -errno;
	if (!child)
		for (;;)
			pause();
	r = ptrace(PTRACE_SEIZE, child, NULL, NULL) ? -errno : stop_may(child);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

pid_t stop_tracer_of(pid_t pid, pid_t tid)
{
	char path[64], text[4096], *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	if (procfs_read_small(path, text, sizeof(text)))
		return 0;
	at = strstr(text, "\nTracerPid:");
	return at ? (pid_t)strtol(at + strlen("\nTracerPid:"), NULL, 10) : 0;
}

static int yama_scope(void)
{
	char text[16];

	return procfs_read_small("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text))
		       ? 0
		       : (int)strtol(text, NULL, 10);
}

static void traced(pid_t pid, pid_t tracer, char *to, size_t size)
{
	char comm[16] = "";

	if (!procfs_comm(tracer, tracer, comm) && *comm)
		snprintf(to, size,
			 "process %d is traced by process %d (%s), and a process has one tracer "
			 "at most: detach that first",
			 (int)pid, (int)tracer, comm);
	else
		snprintf(to, size,
			 "process %d is traced already, and a process has one tracer at most: "
			 "detach the other first",
			 (int)pid);
}

void stop_refusal(pid_t pid, pid_t tracer, char *to, size_t size)
{
	int scope = yama_scope();

	if (tracer)
		traced(pid, tracer, to, size);
	else if (scope == 3)
		snprintf(to, size,
			 "cannot stop the threads of process %d: kernel.yama.ptrace_scope is 3, "
			 "so no process may, until the machine is started anew",
			 (int)pid);
	else if (scope)
		snprintf(to, size,
			 "cannot stop the threads of process %d: kernel.yama.ptrace_scope is %d, "
			 "which allows it %s: run fusee with sudo, or sudo sysctl "
			 "kernel.yama.ptrace_scope=0",
			 (int)pid, scope,
			 scope == 1 ? "of what fusee starts itself (-- COMMAND)" : "root only");
	else
		snprintf(to, size,
			 "cannot stop the threads of process %d: it is another user's, or has "
			 "more rights: run fusee with sudo",
			 (int)pid);
}
