// SPDX-License-Identifier: Apache-2.0
/*
 * The process context that an SDK of OpenTelemetry publishes in the memory of its process
 * (OpenTelemetry enhancement proposal 4719, version 2): a mapping of its name begins with a header,
 * which points to a message of protobuf. The process may write anything there, at any time.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "opener/internal/protocol.h"

#define VERSION 2u
#define MAX_MAPS (16u << 20) /* bytes of /proc/PID/maps that are read */
#define LINE 8192u           /* a longer line is not of the context's mapping */

struct header {
	char signature[8];
	uint32_t version, payload_size;
	uint64_t published_at; /* CLOCK_BOOTTIME or CLOCK_MONOTONIC ns; 0: it is being written */
	uint64_t payload;      /* address */
};
_Static_assert(sizeof(struct header) == 32, "as published");

/* Whether a line, terminated and without its newline, is of a context's mapping, which begins at
 * *lo.
 */
static bool is_context(const char *line, uint64_t *lo)
{
	static const char *const names[] = {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]",
					    "/memfd:OTEL_CTX (deleted)", "/memfd:OTEL_CTX"};
	uint64_t hi, offset, ino;
	unsigned int major, minor;
	char rights[5];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", lo, &hi,
		   rights, &offset, &major, &minor, &ino, &at) < 7 ||
	    !at || hi <= *lo || hi - *lo < sizeof(struct header) || rights[0] != 'r' || offset)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(line + at, names[i]))
			return true;
	return false;
}

/* Looks through the complete lines of text[0..n). Returns the bytes behind the last of them. */
static size_t look_through(char *text, size_t n, uint64_t *lo, bool *found)
{
	char *line = text, *end;

	while (!*found && (end = memchr(line, '\n', n - (size_t)(line - text)))) {
		*end = '\0';
		*found = is_context(line, lo);
		line = end + 1;
	}
	return n - (size_t)(line - text);
}

/* 0; -ENOENT: there is no such mapping; -errno. */
static int find_mapping(pid_t pid, uint64_t *lo)
{
	char path[64], text[2 * LINE];
	size_t kept = 0, all = 0;
	bool found = false;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!found && all < MAX_MAPS && (n = read(fd, text + kept, sizeof(text) - kept)) > 0) {
		size_t end = kept + (size_t)n, from;

		all += (size_t)n;
		kept = look_through(text, end, lo, &found);
		from = end - kept;
		if (kept >= LINE) /* drops the line's begin; its end is no valid line */
			kept = 0;
		memmove(text, text + from, kept);
	}
	n = n < 0 ? -errno : 0;
	close(fd);
	return found ? 0 : n ? (int)n : -ENOENT;
}

static int copy(pid_t pid, void *to, size_t len, uint64_t from)
{
	struct iovec local = {to, len}, remote = {(void *)(uintptr_t)from, len};
	ssize_t n = len ? process_vm_readv(pid, &local, 1, &remote, 1, 0) : 0;

	return n < 0 ? -errno : n == (ssize_t)len ? 0 : -EFAULT;
}

int opener_read_context(const struct opener_query *q, struct opener_answer *a)
{
	struct header h, again;
	uint64_t lo;
	int r = find_mapping(q->pid, &lo);

	if (!r)
		r = copy(q->pid, &h, sizeof(h), lo);
	if (r)
		return r;
	if (memcmp(h.signature, "OTEL_CTX", 8) || h.version != VERSION)
		return -ENOENT;
	if (!h.published_at)
		return -EBUSY;
	if (h.payload_size > q->len)
		return -E2BIG;
	r = copy(q->pid, q->buf, h.payload_size, h.payload);
	if (!r)
		r = copy(q->pid, &again, sizeof(again), lo);
	if (r)
		return r;
	if (memcmp(&h, &again, sizeof(h)))
		return -EBUSY; /* it was published anew while it was copied */
	a->len = h.payload_size;
	return 0;
}
