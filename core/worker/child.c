// SPDX-License-Identifier: Apache-2.0
/* Starts and ends worker processes. */
#include "worker/internal/child.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/sandbox.h"
#include "sandbox/spawn.h"

/* A killed process in a read of an unreachable file server may not end at all. */
#define DEATH_NS 500000000u
#define LAST_NS 100000000u /* until a process that ends by itself is killed */
#define LAST_MESSAGES 4    /* messages of an ended process that are read */

int child_start(struct child *c, char *const *arguments, uint64_t memory_limit,
		struct output_limit *limit)
{
	char fd[16], memory[32];
	char *argv[CHILD_MAX_ARGUMENTS + 5] = {"fusee", "worker", fd, memory};
	int writer, err;

	for (uint32_t i = 0; i < CHILD_MAX_ARGUMENTS && arguments[i]; i++)
		argv[4 + i] = arguments[i];
	snprintf(fd, sizeof(fd), "%d", SPAWN_FD);
	snprintf(memory, sizeof(memory), "%" PRIu64, memory_limit);
	*c = (struct child){0};
	err = output_open(&c->output, limit, &writer);
	if (!err) {
		err = spawn_self(&c->pid, &c->sock, writer, argv);
		close(writer);
	}
	if (err) {
		output_close(&c->output, 0);
		return err;
	}
	log_debug("worker %d started", c->pid);
	return 0;
}

static void describe(const struct child *c, int status, char *why, size_t len)
{
	if (c->denied)
		snprintf(why, len, "it tried the system call %s (%u), which its sandbox forbids",
			 sandbox_call_name(c->denied - 1), c->denied - 1);
	else if (WIFSIGNALED(status))
		snprintf(why, len, "it was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(why, len, "it ended with exit code %d", WEXITSTATUS(status));
}

static void kill_now(struct child *c)
{
	kill(c->pid, SIGKILL);
	c->killed = true;
	c->end_ns = clock_now() + DEATH_NS;
}

void child_end(struct child *c, bool kill)
{
	if (!c->pid || (c->ending && (c->killed || !kill)))
		return;
	c->ending = true;
	c->end_ns = clock_now() + LAST_NS;
	if (kill)
		kill_now(c);
}

/* Reads the last messages of an ended process, REPLY_DENIED among them. */
static void drain(struct child *c)
{
	struct protocol_reply r;
	int fd;

	for (int i = 0; i < LAST_MESSAGES && child_receive(c, &r, &fd) == 1; i++)
		if (fd >= 0)
			close(fd);
}

static void release(struct child *c)
{
	output_close(&c->output, c->pid);
	close(c->sock);
	c->pid = 0;
}

bool child_has_ended(struct child *c, char *why, size_t len, bool *stuck)
{
	int status = 0;
	pid_t got;

	*stuck = false;
	do
		got = waitpid(c->pid, &status, WNOHANG);
	while (got < 0 && errno == EINTR);
	if (got) {
		drain(c);
		c->by_others = got > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
			       !c->killed;
		if (why)
			describe(c, status, why, len);
		release(c);
		return true;
	}
	if (clock_now() < c->end_ns)
		return false;
	*stuck = c->killed;
	if (!c->killed)
		kill_now(c);
	return false;
}

void child_stop(struct child *c)
{
	bool stuck = false;

	if (!c->pid)
		return;
	child_end(c, true);
	while (!child_has_ended(c, NULL, 0, &stuck)) {
		if (stuck) {
			log_debug("worker %d does not end", c->pid);
			release(c);
			return;
		}
		poll(NULL, 0, 1);
	}
}

int child_receive(struct child *c, struct protocol_reply *r, int *fd)
{
	for (;;) {
		int got = protocol_receive_reply(c->sock, r, fd);

		if (got <= 0)
			return got;
		text_ascii(r->text, r->kind == REPLY_READY ? "" : "\n");
		if ((r->kind == REPLY_DONE || r->kind == REPLY_UNWINDER) && c->ready)
			return 1;
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		/* Each of these is valid once, so that this loop ends. */
		if (r->kind == REPLY_DENIED && !c->denied) {
			c->denied = r->call + 1 ? r->call + 1 : 1;
		} else if (r->kind == REPLY_READY && (c->ready || c->err)) {
			return -EBADMSG;
		} else if (r->kind == REPLY_READY && !r->err) {
			c->ready = true;
		} else if (r->kind == REPLY_READY) {
			c->err = r->err;
			snprintf(c->text, sizeof(c->text), "%s", r->text);
		} else {
			return -EBADMSG;
		}
	}
}
