/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage FILE CMD...: runs CMD and writes {"start", "end", "cpu"} to FILE: CLOCK_MONOTONIC seconds
 * at which CMD began and ended, and the CPU seconds of it and its children. Between a profiler and
 * its program, to tell the two apart.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double start = now(), end;
	struct rusage u;
	int status;
	pid_t pid;
	FILE *f;

	if (argc < 3)
		return 64;
	pid = fork();
	if (!pid) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &u) != pid)
		return 1;
	end = now();
	f = fopen(argv[1], "w");
	if (!f)
		return 1;
	fprintf(f, "{\"start\": %.6f, \"end\": %.6f, \"cpu\": %.6f}\n", start, end,
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6);
	fclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
