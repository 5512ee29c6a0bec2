// SPDX-License-Identifier: Apache-2.0
/* worker_step(): a step by libunwind, as a request. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/internal/client.h"

#define RED_ZONE 128u /* bytes below sp that a function may use */

/* Sets the part of the stack copy that is sent: from the red zone on, as much as a message holds.
 */
static const void *set_payload(struct client_request *req, const struct worker_step *s)
{
	uint64_t sp = s->regs[7], skip = 0;

	if (s->valid & 1u << 7 && sp > s->stack_lo + RED_ZONE && sp - s->stack_lo < s->len)
		skip = (sp - s->stack_lo - RED_ZONE) & ~7ull;
	req->len = s->len - skip < PROTOCOL_INLINE ? s->len - skip : PROTOCOL_INLINE;
	req->step->stack_lo = s->stack_lo + skip;
	return (const char *)s->stack + skip;
}

/* 0 or -ENOMEM. */
static int fill(struct client_request *req, const struct worker_step *s)
{
	const void *stack;

	req->step = calloc(1, sizeof(*req->step));
	if (!req->step)
		return -ENOMEM;
	req->step->kind = REQUEST_STEP;
	req->step->bias = s->bias;
	req->step->valid = s->valid;
	memcpy(req->step->key, s->inspection->key, sizeof(req->step->key));
	memcpy(req->step->regs, s->regs, sizeof(req->step->regs));
	stack = set_payload(req, s);
	req->payload = malloc(req->len ? req->len : 1);
	if (!req->payload)
		return -ENOMEM;
	memcpy(req->payload, stack, req->len);
	return 0;
}

int worker_step(struct worker *w, const struct worker_step *s, const struct worker_requester *by,
		worker_stepped *done, void *arg)
{
	struct client_request *req;
	const struct refusal *refused;
	int err = client_request_new(w, &req, s->fd, "a file with rows that no table expresses", by,
				     arg);

	if (err)
		return err;
	req->stepped = done;
	req->item.bytes = 0; /* the cost of a step does not depend on the file's size */
	req->lane = req->lane == LANE_CLEAN ? LANE_STEP_CLEAN : LANE_STEP_OTHERS;
	req->keyed = true;
	memcpy(req->key, s->inspection->key, sizeof(req->key));
	refused = refusals_find(&w->refusals, &req->file, req->key);
	err = refused ? refused->err : fill(req, s);
	if (err) {
		client_request_free(req);
		return err;
	}
	return client_enqueue(w, req);
}

void client_step_finish(struct client_request *req, const struct protocol_reply *r)
{
	uint64_t valid = r->valid & ((1u << PROTOCOL_REGS) - 1);
	int err = r->err;

	if (err < -4095 || err > 1)
		err = -EBADMSG;
	req->stepped(req->arg, err, r->regs, err < 0 ? 0 : valid);
}
