/* SPDX-License-Identifier: Apache-2.0 */
#include "stop/internal/thread_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "process/procfs.h"

static int open_schedstat(const struct thread_clock *c)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)c->pid, (int)c->tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void thread_clock_open(struct thread_clock *c, pid_t pid, pid_t tid, bool keep)
{
	*c = (struct thread_clock){.pid = pid, .tid = tid, .fd = -1};
	if (keep)
		c->fd = open_schedstat(c);
}

void thread_clock_close(struct thread_clock *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* Where the kernel was built without schedstat: rounded to clock ticks. */
static int read_stat(const struct thread_clock *c, uint64_t *ns)
{
	uint64_t user, system, tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	char path[64], text[1024], *at;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)c->pid, (int)c->tid);
	r = procfs_read_small(path, text, sizeof(text));
	if (r)
		return r;
	at = strrchr(text, ')');
	if (!at ||
	    sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
		   &user, &system) != 2)
		return -EBADMSG;
	*ns = (user + system) * tick;
	return 0;
}

int thread_clock_read(const struct thread_clock *c, uint64_t *ns, uint64_t *waited_ns,
		      uint64_t *runs)
{
	int fd = c->fd >= 0 ? c->fd : open_schedstat(c), err;
	char text[96];
	ssize_t n;

	if (fd < 0)
		return read_stat(c, ns);
	n = pread(fd, text, sizeof(text) - 1, 0);
	err = n < 0 ? -errno : 0;
	if (fd != c->fd)
		close(fd);
	if (err)
		return err;
	text[n] = '\0';
	return sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, ns, waited_ns, runs) == 3
		       ? 0
		       : read_stat(c, ns);
}

/* The number of a process's CPU clock, as in linux/posix-timers.h: CPUCLOCK_SCHED of all threads.
 */
static clockid_t clock_of(pid_t pid)
{
	return (clockid_t)(~(unsigned int)pid << 3 | 2u);
}

int process_clock_read(pid_t pid, uint64_t *ns)
{
	struct timespec t;

	if (clock_gettime(clock_of(pid), &t))
		return -ESRCH;
	*ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return 0;
}

bool thread_runs(pid_t pid, pid_t tid)
{
	char path[64], text[256], *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (procfs_read_small(path, text, sizeof(text)))
		return false;
	at = strrchr(text, ')');
	return at && at[1] == ' ' && at[2] == 'R';
}
