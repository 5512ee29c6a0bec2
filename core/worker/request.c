// SPDX-License-Identifier: Apache-2.0
/* One request: made, queued, freed. */
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

int client_enqueue(struct worker *w, struct client_request *req)
{
	int err = turns_add(&w->queues[req->lane], &req->item);

	if (err) {
		client_request_free(req);
		return err;
	}
	w->pending += !req->named;
	w->changed = true;
	pool_set_timer(w);
	return 0;
}
