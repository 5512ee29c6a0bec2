/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and processes that come and go and switch at the machine's full speed.
 *
 *	storm pairs LANES N TURNS	N pairs of threads one after another in each lane; a byte
 *goes to and fro between the two TURNS times
 *	storm children LANES N TURNS	the same of N children of each lane and their parent
 *	storm crowd TIMES N		N threads at once that wait for one gate
 *
 * It prints the time that all of them were off the CPU, at least (what each has measured from its
 * begin to its end) and at most (from before it began until after it had ended), in ns; how many
 * there were; and the switches that the kernel has counted.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
	_Atomic int64_t least, most, ended;
	_Atomic int32_t arrived, gate;
} * shared;
static long lanes, number, turns;

static void fail(const char *what)
{
	perror(what);
	_exit(3);
}

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

struct span {
	int64_t wall, cpu;
};

static struct span begin(void)
{
	return (struct span){now(CLOCK_MONOTONIC), now(CLOCK_THREAD_CPUTIME_ID)};
}

/* Returns the thread's CPU time. */
static int64_t end(struct span s)
{
	int64_t cpu = now(CLOCK_THREAD_CPUTIME_ID),
		off = now(CLOCK_MONOTONIC) - s.wall - (cpu - s.cpu);

	atomic_fetch_add(&shared->least, off > 0 ? off : 0);
	atomic_fetch_add(&shared->ended, 1);
	return cpu;
}

struct end {
	int in, out, first;
	int64_t cpu;
};

static void turn(struct end *e)
{
	char c = 0;

	for (long i = 0; i < turns; i++)
		if ((e->first && write(e->out, &c, 1) != 1) || read(e->in, &c, 1) != 1 ||
		    (!e->first && write(e->out, &c, 1) != 1))
			fail("pipe");
}

static void *one_of_pair(void *arg)
{
	struct end *e = arg;
	struct span s = begin();

	turn(e);
	e->cpu = end(s);
	return NULL;
}

static void pair(void)
{
	int to[2], fro[2];
	struct end e[2];
	pthread_t t[2];
	int64_t from[2];

	if (pipe(to) || pipe(fro))
		fail("pipe");
	e[0] = (struct end){fro[0], to[1], 1, 0};
	e[1] = (struct end){to[0], fro[1], 0, 0};
	for (int i = 0; i < 2; i++) {
		from[i] = now(CLOCK_MONOTONIC);
		if (pthread_create(&t[i], NULL, one_of_pair, &e[i]))
			fail("pthread_create");
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], NULL);
		atomic_fetch_add(&shared->most, now(CLOCK_MONOTONIC) - from[i] - e[i].cpu);
	}
	close(to[0]), close(to[1]), close(fro[0]), close(fro[1]);
}

static void child(void)
{
	struct rusage use;
	int to[2], fro[2], status;
	struct end parent, other;
	int64_t from = now(CLOCK_MONOTONIC);
	pid_t pid;

	if (pipe2(to, O_CLOEXEC) || pipe2(fro, O_CLOEXEC))
		fail("pipe");
	parent = (struct end){fro[0], to[1], 1, 0};
	other = (struct end){to[0], fro[1], 0, 0};
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		one_of_pair(&other);
		_exit(0);
	}
	turn(&parent);
	if (wait4(pid, &status, 0, &use) != pid || status)
		fail("child");
	atomic_fetch_add(&shared->most,
			 now(CLOCK_MONOTONIC) - from -
				 (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000LL -
				 (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000LL);
	close(to[0]), close(to[1]), close(fro[0]), close(fro[1]);
}

static void *lane(void *each)
{
	struct span s = begin();

	for (long i = 0; i < number; i++)
		((void (*)(void))each)();
	end(s);
	return (void *)now(CLOCK_THREAD_CPUTIME_ID);
}

static void run_lanes(void (*each)(void))
{
	pthread_t t[64];
	int64_t from[64];
	void *cpu;

	for (long i = 0; i < lanes; i++) {
		from[i] = now(CLOCK_MONOTONIC);
		if (pthread_create(&t[i], NULL, lane, (void *)each))
			fail("pthread_create");
	}
	for (long i = 0; i < lanes; i++) {
		pthread_join(t[i], &cpu);
		atomic_fetch_add(&shared->most, now(CLOCK_MONOTONIC) - from[i] - (int64_t)cpu);
	}
}

static void *one_of_crowd(void *cpu)
{
	struct span s = begin();

	atomic_fetch_add(&shared->arrived, 1);
	while (!atomic_load(&shared->gate))
		syscall(SYS_futex, &shared->gate, FUTEX_WAIT, 0, NULL, NULL, 0);
	*(int64_t *)cpu = end(s);
	return NULL;
}

static void crowd(void)
{
	pthread_t *t = calloc((size_t)number, sizeof(*t));
	int64_t *cpu = calloc((size_t)number, sizeof(*cpu)),
		*from = calloc((size_t)number, sizeof(*from));
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32768);
	shared->arrived = shared->gate = 0;
	for (long i = 0; i < number; i++) {
		from[i] = now(CLOCK_MONOTONIC);
		if (pthread_create(&t[i], &small, one_of_crowd, &cpu[i]))
			fail("pthread_create");
	}
	while (shared->arrived < number)
		sched_yield();
	shared->gate = 1;
	syscall(SYS_futex, &shared->gate, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	for (long i = 0; i < number; i++) {
		pthread_join(t[i], NULL);
		atomic_fetch_add(&shared->most, now(CLOCK_MONOTONIC) - from[i] - cpu[i]);
	}
	free(t), free(cpu), free(from);
}

int main(int argc, char **argv)
{
	struct span s = begin();
	struct rusage own, children;
	const char *what = argv[1];

	if (argc < 4)
		return 2;
	lanes = atol(argv[2]);
	number = atol(argv[3]);
	turns = argc > 4 ? atol(argv[4]) : 0;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || lanes > 64)
		return 2;
	if (!strcmp(what, "crowd"))
		for (long i = 0; i < lanes; i++)
			crowd();
	else
		run_lanes(!strcmp(what, "pairs") ? pair : child);
	end(s);
	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	printf("%lld %lld %lld %ld\n", (long long)shared->least,
	       (long long)(shared->most + now(CLOCK_MONOTONIC) - s.wall -
			   (now(CLOCK_THREAD_CPUTIME_ID) - s.cpu)),
	       (long long)shared->ended,
	       own.ru_nvcsw + own.ru_nivcsw + children.ru_nvcsw + children.ru_nivcsw);
	return 0;
}
