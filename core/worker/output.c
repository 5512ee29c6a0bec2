// SPDX-License-Identifier: Apache-2.0
/* The lines that worker processes print, for the log. */
#include "worker/internal/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/utf8.h"

#define MINUTE_NS 60000000000ull
#define READS 16 /* of 4 KiB, in one call */
#define PREFIX "fusee worker: "

int output_open(struct output *o, struct output_limit *limit, int *writer)
{
	int pair[2];

	*o = (struct output){.fd = -1, .limit = limit};
	if (pipe2(pair, O_CLOEXEC))
		return -errno;
	if (fcntl(pair[0], F_SETFL, O_NONBLOCK)) {
		int err = -errno;

		close(pair[0]);
		close(pair[1]);
		return err;
	}
	o->fd = pair[0];
	*writer = pair[1];
	return 0;
}

bool output_is_allowed(struct output_limit *limit)
{
	uint64_t now = clock_now();

	if (log_level() >= LOG_DEBUG)
		return true;
	if (now - limit->began_ns > MINUTE_NS)
		*limit = (struct output_limit){.began_ns = now};
	if (limit->lines < OUTPUT_MAX_LINES) {
		limit->lines++;
		return true;
	}
	if (limit->lines++ == OUTPUT_MAX_LINES)
		log_warning("workers, and files, say too much: further lines are dropped for a "
			    "minute");
	metric_add("worker_output_dropped_total",
		   "Total number of lines that workers printed, or that say which file an unwinder "
		   "does not survive, and that were not logged.",
		   NULL, 1);
	return false;
}

static void end_line(struct output *o, pid_t pid)
{
	struct buf clean = {0};
	const char *text = o->line;

	o->line[o->len] = 0;
	if (!strncmp(text, PREFIX, sizeof(PREFIX) - 1))
		text += sizeof(PREFIX) - 1;
	if (*text && output_is_allowed(o->limit)) {
		utf8_clean_printable(&clean, text, strlen(text));
		buf_add(&clean, "", 1);
		if (!clean.error)
			log_warning("worker %d: %s", (int)pid, clean.p);
		buf_fini(&clean);
	}
	o->len = 0;
}

int output_read(struct output *o, pid_t pid)
{
	char bytes[4096];
	ssize_t n = 0;

	for (int i = 0; i < READS && o->fd >= 0; i++) {
		n = read(o->fd, bytes, sizeof(bytes));
		if (n <= 0)
			break;
		for (ssize_t at = 0; at < n; at++) {
			if (bytes[at] == '\n')
				end_line(o, pid);
			else if (o->len < OUTPUT_LINE)
				o->line[o->len++] = bytes[at] ? bytes[at] : '?';
		}
	}
	return !n && o->fd >= 0 ? -EPIPE : 0;
}

void output_close(struct output *o, pid_t pid)
{
	if (o->fd < 0)
		return;
	output_read(o, pid);
	if (o->len)
		end_line(o, pid);
	close(o->fd);
	o->fd = -1;
}
