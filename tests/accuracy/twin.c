/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ticks due: a cpu-clock event of the same period on the same target, with neither stack nor
 *registers.
 *
 *	twin -c PERIOD_NS -p PID
 *
 * Opens it on every thread of PID and, by inheritance, on every thread and child to come; prints
 *"ready", then, when PID has ended (or at SIGTERM), one JSON object: ticks (records that the event
 *really wrote), count_ns (its count, the CPU time that it saw), lost. A tick that the machine
 *skipped for the twin as well was not due.
 */
#include <errno.h>
#include <dirent.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_CPUS 1024
#define PAGES 256 /* a tick is 16 bytes: 65,536 of them a CPU between two looks */

struct ring {
	int fd; /* the event that owns the buffer, -1 none yet */
	struct perf_event_mmap_page *page;
	uint64_t tail;
};

static struct ring rings[MAX_CPUS];
static int *fds, n_fds, n_cpus;
static uint64_t ticks, lost;
static volatile sig_atomic_t stop;

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
}

static int fail(const char *what)
{
	fprintf(stderr, "twin: %s: %s\n", what, strerror(errno));
	return 1;
}

static int open_on(pid_t tid, int cpu, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_TID,
		.inherit = 1,
	};
	struct ring *ring = &rings[cpu];
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	int *more;

	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		attr.exclude_kernel = 1;
		fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd < 0)
		return errno == ESRCH || errno == ENODEV ? 0 : -1;
	more = realloc(fds, ((size_t)n_fds + 1) * sizeof(*fds));
	if (!more)
		return -1;
	fds = more;
	fds[n_fds++] = fd;
	if (ring->page)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd);
	ring->fd = fd;
	ring->page = mmap(NULL, (PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return ring->page == MAP_FAILED ? -1 : 0;
}

static int open_all(pid_t pid, uint64_t period)
{
	char path[64];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d)
		return -1;
	while ((e = readdir(d)))
		for (int cpu = 0; e->d_name[0] != '.' && cpu < n_cpus; cpu++)
			if (open_on(atoi(e->d_name), cpu, period))
				return -1;
	closedir(d);
	return 0;
}

static void drain(struct ring *r)
{
	const unsigned char *data = (const unsigned char *)r->page + 4096;
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);

	while (r->tail < head) {
		struct perf_event_header h;
		uint64_t n;

		/* records are multiples of 8 bytes, so a header never wraps */
		memcpy(&h, data + r->tail % (PAGES * 4096), sizeof(h));
		if (h.type == PERF_RECORD_SAMPLE) {
			ticks++;
		} else if (h.type == PERF_RECORD_LOST) {
			memcpy(&n, data + (r->tail + 16) % (PAGES * 4096), 8);
			lost += n;
		}
		r->tail += h.size;
	}
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}

static void drain_all(void)
{
	for (int cpu = 0; cpu < n_cpus; cpu++)
		if (rings[cpu].page)
			drain(&rings[cpu]);
}

static uint64_t count_all(void)
{
	uint64_t sum = 0, n;

	for (int i = 0; i < n_fds; i++)
		if (read(fds[i], &n, sizeof(n)) == sizeof(n))
			sum += n;
	return sum;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_stop};
	uint64_t period = 0;
	struct pollfd ended;
	pid_t pid = 0;
	int opt;

	while ((opt = getopt(argc, argv, "c:p:")) != -1)
		if (opt == 'c')
			period = strtoull(optarg, NULL, 10);
		else if (opt == 'p')
			pid = atoi(optarg);
	if (!period || pid <= 0) {
		fputs("usage: twin -c PERIOD_NS -p PID\n", stderr);
		return 64;
	}
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	n_cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	if (n_cpus > MAX_CPUS)
		n_cpus = MAX_CPUS;
	ended = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	if (ended.fd < 0)
		return fail("pidfd_open");
	if (open_all(pid, period))
		return fail("perf_event_open");
	puts("ready");
	fflush(stdout);
	while (!stop && poll(&ended, 1, 500) <= 0)
		drain_all();
	drain_all();
	printf("{\"ticks\": %llu, \"lost\": %llu, \"count_ns\": %llu, \"period_ns\": %llu}\n",
	       (unsigned long long)ticks, (unsigned long long)lost, (unsigned long long)count_all(),
	       (unsigned long long)period);
	return 0;
}
