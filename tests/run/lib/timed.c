/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whose number, times and chains are known, for tests/run/timed-calls. `timed N` calls each
 * of the functions that are probed from places of its own and prints, for each place, "PLACE CALLS
 * LEAST MOST": the ns that were measured inside of the function, and around the call. With another
 * argument it waits for a byte first.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define LEVELS 8
#define DEEP 70 /* the kernel knows the return addresses of 64 calls of a thread */
#define APART __attribute__((noinline))
#define AND_NO_TAIL_CALL __asm__ volatile("" ::: "memory")

struct place {
	uint64_t calls, least, most;
};

static int n;
static jmp_buf back;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void print(const char *name, struct place p)
{
	printf("%s %llu %llu %llu\n", name, (unsigned long long)p.calls,
	       (unsigned long long)p.least, (unsigned long long)p.most);
	fflush(stdout);
}

/* Takes so many ns at least. Returns how many it has measured. */
APART uint64_t timed(uint64_t ns)
{
	uint64_t began = now(), ended;

	do
		ended = now();
	while (ended - began < ns);
	return ended - began;
}

APART uint64_t sleeping(uint64_t ns)
{
	struct timespec t = {.tv_nsec = (long)ns};
	uint64_t began = now();

	nanosleep(&t, NULL);
	return now() - began;
}

static void add(struct place *p, uint64_t (*f)(uint64_t), uint64_t ns)
{
	uint64_t began = now();

	p->least += f(ns);
	p->most += now() - began;
	p->calls++;
}

#define PLACE(name, function, ns)              \
	APART static struct place name(void)   \
	{                                      \
		struct place p = {0};          \
                                               \
		for (int i = 0; i < n; i++)    \
			add(&p, function, ns); \
		AND_NO_TAIL_CALL;              \
		return p;                      \
	}

PLACE(plain, timed, 1000)
PLACE(longer, timed, 50000)
PLACE(waits, sleeping, 100000)

/* Each level is a call, and its time has that of the others in it. Returns that of the outermost.
 */
APART uint64_t nested(uint64_t level)
{
	uint64_t began = now();

	if (level > 1)
		nested(level - 1);
	AND_NO_TAIL_CALL;
	return now() - began;
}

PLACE(recursion, nested, LEVELS)

APART uint64_t deep(uint64_t level)
{
	uint64_t began = now();

	if (level > 1)
		deep(level - 1);
	AND_NO_TAIL_CALL;
	return now() - began;
}

PLACE(too_deep, deep, DEEP)

/* Ends with a jump: both return at once. */
uint64_t jumped(uint64_t ns);
uint64_t jumps(uint64_t ns);
__asm__(".pushsection .text\n"
	".globl jumps\n"
	".type jumps, @function\n"
	"jumps:	.cfi_startproc\n"
	"	nop\n"
	"	jmp jumped\n"
	"	.cfi_endproc\n"
	".size jumps, . - jumps\n"
	".popsection\n");

APART uint64_t jumped(uint64_t ns)
{
	uint64_t r = timed(ns);

	AND_NO_TAIL_CALL;
	return r;
}

PLACE(jumping, jumps, 1000)

/* Jumps to its own begin as often as rdi says, and then to timed_apart: one call. */
uint64_t timed_apart(uint64_t unused);
uint64_t again(uint64_t times);
__asm__(".pushsection .text\n"
	".globl again\n"
	".type again, @function\n"
	"again:	.cfi_startproc\n"
	"	nop\n"
	"	dec %rdi\n"
	"	jnz again\n"
	"	jmp timed_apart\n"
	"	.cfi_endproc\n"
	".size again, . - again\n"
	".popsection\n");

APART uint64_t timed_apart(uint64_t unused)
{
	uint64_t began = now();

	(void)unused;
	while (now() - began < 2000)
		;
	return now() - began;
}

PLACE(to_itself, again, 3)

/* Every other call ends by a longjmp, and never returns. */
APART uint64_t jumps_out(uint64_t odd)
{
	uint64_t began = now();

	while (now() - began < 1000)
		;
	if (odd)
		longjmp(back, 1);
	return now() - began;
}

APART static void leave(void)
{
	if (!setjmp(back))
		jumps_out(1);
	AND_NO_TAIL_CALL;
}

APART static struct place leaving(void)
{
	struct place p = {0};

	for (int i = 0; i < n; i++) {
		leave();
		add(&p, jumps_out, 0);
	}
	AND_NO_TAIL_CALL;
	return p;
}

APART static void *of_thread(void *arg)
{
	struct place *p = arg;

	for (int i = 0; i < n; i++)
		add(p, timed, 1000);
	AND_NO_TAIL_CALL;
	return NULL;
}

static struct place threads(void)
{
	struct place all = {0}, of[THREADS] = {{0}};
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, of_thread, &of[i]))
			exit(1);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		all.calls += of[i].calls;
		all.least += of[i].least;
		all.most += of[i].most;
	}
	return all;
}

PLACE(of_child, timed, 1000)

static void child(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		print("of_child;timed", of_child());
		_exit(0);
	}
	if (waitpid(pid, &status, 0) < 0 || status)
		exit(1);
}

/* Both processes return from it; the child has not begun it. */
APART pid_t forks(void)
{
	pid_t pid = fork();

	AND_NO_TAIL_CALL;
	return pid;
}

static void forked(void)
{
	struct place p = {0};
	int status;

	for (int i = 0; i < 3; i++) {
		uint64_t began = now();
		pid_t pid = forks();

		if (!pid)
			_exit(0);
		p.most += now() - began;
		p.calls++;
		if (waitpid(pid, &status, 0) < 0 || status)
			exit(1);
	}
	print("forked;forks", p);
}

/* Its thread ends in it. */
APART void *ends(void *arg)
{
	if (arg)
		pthread_exit(NULL);
	AND_NO_TAIL_CALL;
	return arg;
}

static void ending(void)
{
	pthread_t t;

	for (int i = 0; i < 3; i++) {
		if (pthread_create(&t, NULL, ends, &n))
			exit(1);
		pthread_join(t, NULL);
	}
}

int main(int argc, char **argv)
{
	char c;

	n = argc > 1 ? atoi(argv[1]) : 0;
	if (argc > 2 && read(0, &c, 1) != 1)
		return 1;
	print("main;plain;timed", plain());
	print("main;longer;timed", longer());
	print("main;waits;sleeping", waits());
	print("main;recursion;nested", recursion());
	print("main;too_deep;deep", too_deep());
	print("main;jumping;jumps", jumping());
	print("main;to_itself;again", to_itself());
	print("main;leaving;jumps_out", leaving());
	print("of_thread;timed", threads());
	child();
	forked();
	ending();
	return 0;
}
