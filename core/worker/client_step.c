// SPDX-License-Identifier: Apache-2.0
/* worker_step(): sends a step to the stepper process and waits for its reply. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/client.h"

#define RED_ZONE 128u /* bytes below sp that a function may use */
/* A step takes microseconds, but an expression can loop without end, and the caller waits. */
#define STEP_MS 1000u
/* libunwind leaks about 100 bytes at each step; then the process is replaced. */
#define MAX_STEPS 500000u

/* 1: *r is the reply; 0: time is over; -EPIPE, -EBADMSG. */
static int wait_for_reply(struct worker *w, struct protocol_reply *r)
{
	uint32_t ms = w->request_ms < STEP_MS ? w->request_ms : STEP_MS;
	uint64_t end = clock_now() + (uint64_t)ms * 1000000, now;
	int fd, got;

	for (;;) {
		struct pollfd p = {.fd = w->stepper.sock, .events = POLLIN};

		got = child_receive(&w->stepper, r, &fd);
		if (fd >= 0)
			close(fd);
		if (got)
			return got;
		now = clock_now();
		if (now >= end)
			return 0;
		if (poll(&p, 1, (int)((end - now) / 1000000) + 1) < 0 && errno != EINTR)
			return -errno;
	}
}

/* Sets the part of the stack copy that is sent: from the red zone on, as much as a message holds.
 */
static const void *set_payload(struct protocol_request *q, const void *stack, uint64_t lo,
			       uint32_t len)
{
	uint64_t sp = q->regs[7], skip = 0;

	if (q->valid & 1u << 7 && sp > lo + RED_ZONE && sp - lo < len)
		skip = (sp - lo - RED_ZONE) & ~7ull;
	if (len - skip > PROTOCOL_INLINE)
		q->payload = PROTOCOL_INLINE;
	else
		q->payload = len - skip;
	q->stack_lo = lo + skip;
	return (const char *)stack + skip;
}

/* One attempt. 1: *r is the reply; 0: time is over; -errno. */
static int try_step(struct worker *w, struct protocol_request *q, int fd, const void *stack,
		    struct protocol_reply *r)
{
	int err;

	if (w->steps == MAX_STEPS)
		client_stop(w, &w->stepper, NULL, 0);
	if (!w->stepper.pid)
		w->steps = 0;
	err = client_start(w, &w->stepper);
	if (err)
		return err;
	w->steps++;
	q->id = ++w->next_id;
	err = protocol_send_request(w->stepper.sock, q, (int[3]){fd, -1, -1}, stack);
	if (err)
		return err == -ECONNRESET ? -EPIPE : err;
	err = wait_for_reply(w, r);
	if (err == 1 && r->id != q->id)
		err = -EBADMSG;
	return err;
}

static int refuse(struct worker *w, int fd, const struct inspection *i, int err, const char *why)
{
	struct stat st;
	char text[400];

	snprintf(text, sizeof(text), "a step through it ends the worker: %s", why);
	if (!fstat(fd, &st))
		refusals_add(&w->refusals, &st, i->key, err,
			     "a file with rows that no table expresses", text);
	log_debug("%s", text);
	return err;
}

int worker_step(struct worker *w, const struct inspection *i, int fd, uint64_t bias,
		uint64_t regs[17], uint64_t *valid, uint64_t stack_lo, const void *stack,
		uint32_t len)
{
	struct protocol_request q = {
		.kind = REQUEST_STEP, .fds = FDS_FILE, .bias = bias, .valid = *valid};
	const struct refusal *refused = refusals_find(&w->refusals, NULL, i->key);
	struct protocol_reply r;
	char why[256];
	int got = -EPIPE;

	if (refused)
		return refused->err;
	memcpy(q.key, i->key, sizeof(q.key));
	memcpy(q.regs, regs, sizeof(q.regs));
	stack = set_payload(&q, stack, stack_lo, len);
	for (int attempt = 0; attempt < 2 && got != 1; attempt++) {
		bool was_ready;

		got = try_step(w, &q, fd, stack, &r);
		if (got == 1)
			break;
		was_ready = w->stepper.ready;
		client_stop(w, &w->stepper, why, sizeof(why));
		if (!got)
			return refuse(w, fd, i, -ETIMEDOUT, "it does not come to an end");
		if (got != -EPIPE && got != -EBADMSG)
			return got;
		if (attempt)
			return was_ready ? refuse(w, fd, i, -EFAULT, why) : -EIO;
	}
	w->stepper_idle_since = clock_now();
	client_set_timer(w);
	if (r.err < 0)
		return r.err > -4096 ? r.err : -EBADMSG;
	*valid = r.valid & ((1u << PROTOCOL_REGS) - 1);
	memcpy(regs, r.regs, sizeof(r.regs));
	return r.err != 0;
}
