// SPDX-License-Identifier: Apache-2.0
/* One request: made, queued, hurried, freed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/internal/client.h"

void client_request_free(struct client_request *req)
{
	if (!req)
		return;
	free(req->payload);
	free(req->step);
	free(req->name);
	free(req);
}

int client_request_new(struct worker *w, struct client_request **ret, int fd, const char *name,
		       const struct worker_requester *by, void *arg)
{
	struct client_request *req = calloc(1, sizeof(*req));
	int err;

	if (!req)
		return -ENOMEM;
	req->fds[0] = fd;
	req->fds[1] = req->fds[2] = -1;
	req->name = strdup(name);
	req->arg = arg;
	req->item.uid = by ? by->uid : geteuid();
	req->item.pid = by ? by->pid : getpid();
	req->needed = by ? by->needed : NULL;
	err = req->name ? owner_of(&w->devices, fd, &req->file) : -ENOMEM;
	if (err) {
		client_request_free(req);
		return err;
	}
	if (by && by->copy_of) /* whoever serves that device chose the bytes of the copy */
		req->file.owner = (struct owner){.dev = by->copy_of};
	req->item.bytes = req->file.stored;
	req->lane = req->file.owner.clean ? LANE_CLEAN : LANE_OTHERS;
	*ret = req;
	return 0;
}

/* Is its inspection on disk, as far as is known? Such a request waits for no turn: the process of
 * its lane may be busy for seconds with another file. */
static bool is_on_disk(struct worker *w, struct client_request *req)
{
	req->cached.known = req->inspected && !req->item.later && w->cache &&
			    owner_is_kept(&req->file.owner);
	if (!req->cached.known)
		return false;
	owner_key(&req->file.identity, w->unwinders, req->cached.key);
	return cache_may_have(w->cache, req->cached.key);
}

int client_enqueue(struct worker *w, struct client_request *req)
{
	int err = 0;

	if (is_on_disk(w, req)) {
		req->not_before = 1; /* in the past; 0 would disarm the timer */
		req->item.next = (void *)w->delayed;
		w->delayed = req;
	} else {
		err = turns_add(&w->queues[req->lane], &req->item);
	}
	if (err) {
		client_request_free(req);
		return err;
	}
	w->pending += !req->named;
	w->changed = true;
	pool_set_timer(w);
	return 0;
}

static bool is_inspection_for(const struct turns_item *item, const void *arg)
{
	const struct client_request *req = (const void *)item;

	return req->inspected && req->arg == arg;
}

void worker_hurry(struct worker *w, const struct worker_requester *by, uint32_t samples,
		  const void *arg)
{
	for (int lane = LANE_CLEAN; lane <= LANE_REST; lane++) {
		const struct client_request *req = (const void *)turns_hurry(
			&w->queues[lane], by->uid, by->pid, samples, is_inspection_for, arg);

		if (req)
			pool_give_way(w, req);
	}
	for (int i = 0; i < POOL_SLOTS; i++) {
		struct slot *s = &w->slots[i];
		struct client_request *req = s->current ? s->current : s->next;

		if (req && is_inspection_for(&req->item, arg))
			req->item.urgent = samples;
	}
}
