/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose system calls and forks are known, for tests/run/rawtp: `tracepoints N` asks for
 * the priority of process i for i from 0 to N - 1, N times in all, and forks 20 times. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void asks(int i)
{
	syscall(SYS_getpriority, 0, i);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void forks(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;

	for (int i = 0; i < n; i++)
		asks(i);
	for (int i = 0; i < 20; i++)
		forks();
	return 0;
}
