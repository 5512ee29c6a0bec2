/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of known length and place, for tests/run/offcpu: `waits N` writes for each place
 * "place count ns queued", the ns by the thread's own clocks and by the scheduler. A place that is
 * not possible here has no line. `waits N FOLDER`: where its file is.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the other side of pipes and futexes: it answers after a pause ---- */

static int ask[2], answer[2];
static uint32_t word;
static long pause_ns;

static void nap(long ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};

	nanosleep(&t, NULL);
}

static void *answers(void *arg)
{
	char c;

	(void)arg;
	while (read(ask[0], &c, 1) == 1) {
		nap(pause_ns);
		if (c == 'p' && write(answer[1], &c, 1) != 1)
			break;
		if (c == 'f') {
			__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
			syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		}
	}
	return NULL;
}

static void request(char c)
{
	if (write(ask[1], &c, 1) != 1)
		exit(1);
}

/* ---- the places; each is a function in the stack ---- */

__attribute__((noinline)) static void sleep_long(void)
{
	nap(pause_ns);
	__asm__ volatile("");
}

__attribute__((noinline)) static void sleep_short(void)
{
	nap(400000);
	__asm__ volatile("");
}

__attribute__((noinline)) static void wait_pipe(void)
{
	char c;

	request('p');
	if (read(answer[0], &c, 1) != 1)
		exit(1);
	__asm__ volatile("");
}

__attribute__((noinline)) static void wait_futex(void)
{
	request('f');
	while (!__atomic_load_n(&word, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	__atomic_store_n(&word, 0, __ATOMIC_RELEASE);
	__asm__ volatile("");
}

/* ---- what the disk and the memory let it wait for ---- */

static int disk = -1;
static off_t written;
static int faults = -1;
static volatile char *memory;
static size_t touched, page;

/* Its data is on the disk when it returns. */
__attribute__((noinline)) static void wait_disk(void)
{
	static char block[65536];

	for (size_t i = 0; i < sizeof(block); i += 512)
		block[i]++;
	if (pwrite(disk, block, sizeof(block), written) != sizeof(block) || fdatasync(disk))
		exit(1);
	written += sizeof(block);
	__asm__ volatile("");
}

__attribute__((noinline)) static void wait_fault(void)
{
	memory[touched++ * page] = 1;
	__asm__ volatile("");
}

/* Each page comes after a pause. */
static void *gives_pages(void *arg)
{
	struct uffd_msg m;

	(void)arg;
	while (read(faults, &m, sizeof(m)) == sizeof(m)) {
		struct uffdio_zeropage zero = {
			.range = {m.arg.pagefault.address & ~(page - 1), page}};

		nap(pause_ns);
		if (ioctl(faults, UFFDIO_ZEROPAGE, &zero))
			exit(1);
	}
	return NULL;
}

/* Both: whether it is possible here. The file has no name. */
static int begin_disk(const char *folder)
{
	disk = open(folder, O_TMPFILE | O_WRONLY, 0600);
	return disk >= 0;
}

static int begin_faults(size_t n)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t thread;

	page = (size_t)sysconf(_SC_PAGESIZE);
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	memory = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range = (struct uffdio_range){(uintptr_t)memory, n * page};
	return faults >= 0 && memory != MAP_FAILED &&
	       !madvise((void *)memory, n * page, MADV_NOHUGEPAGE) &&
	       !ioctl(faults, UFFDIO_API, &api) && !ioctl(faults, UFFDIO_REGISTER, &range) &&
	       !pthread_create(&thread, NULL, gives_pages, NULL);
}

/* It always has something to do, and shares its CPU with a hog. */
__attribute__((noinline)) static void spin(void)
{
	uint64_t end = cpu() + 5000000;

	while (cpu() < end)
		;
	__asm__ volatile("");
}

/* ---- ---- */

struct place {
	const char *name;
	void (*once)(void);
	int n;
};

/* For how long the thread was ready and did not run, by the scheduler. */
static uint64_t queued(void)
{
	unsigned long long ran, waited = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || fscanf(f, "%llu %llu", &ran, &waited) != 2)
		exit(1);
	fclose(f);
	return waited;
}

static void measure(const struct place *p)
{
	uint64_t began = now(), used = cpu(), ready = queued();

	for (int i = 0; i < p->n; i++)
		p->once();
	began = now() - began - (cpu() - used);
	printf("%s %d %llu %llu\n", p->name, p->n, (unsigned long long)began,
	       (unsigned long long)(queued() - ready));
	fflush(stdout);
}

static void pin(int to)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(to, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Fills the CPU until its parent ends it. */
static pid_t hog(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (volatile uint64_t i = 0;; i++)
		;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10;
	const struct place places[] = {{"sleep_long", sleep_long, n},
				       {"sleep_short", sleep_short, n * 100},
				       {"wait_pipe", wait_pipe, n},
				       {"wait_futex", wait_futex, n}};
	const struct place spinning = {"spin", spin, n * 4};
	const struct place at_disk = {"wait_disk", wait_disk, n * 4},
			   at_fault = {"wait_fault", wait_fault, n};
	pthread_t thread;
	pid_t pid;

	pause_ns = 20000000;
	if (pipe(ask) || pipe(answer) || pthread_create(&thread, NULL, answers, NULL))
		return 1;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		measure(&places[i]);
	if (begin_disk(argc > 2 ? argv[2] : "."))
		measure(&at_disk);
	if (begin_faults((size_t)n))
		measure(&at_fault);
	pin(sched_getcpu());
	pid = hog();
	measure(&spinning);
	kill(pid, 9);
	waitpid(pid, NULL, 0);
	return 0;
}
