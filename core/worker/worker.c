// SPDX-License-Identifier: Apache-2.0
/* The object, and requests for inspections and symbols. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "plugin/instance.h"
#include "inspection/cache_later.h"
#include "sandbox/spawn.h"
#include "worker/internal/client.h"
#include "worker/internal/symbolize_reply.h"

#define DEFAULT_IDLE_MS 2000
#define DEFAULT_REQUEST_MS 60000
#define LARGE (32u << 20)  /* bytes of a file whose inspection may take seconds */
#define MAX_REQUESTS 4096u /* that wait, of one user */
#define MAX_STEPS 64u      /* the same for steps, each of which holds a stack copy */

/* ---- requests ---- */

int worker_inspect(struct worker *w, int fd, const char *name, const struct worker_requester *by,
		   worker_inspected *done, void *arg)
{
	struct client_request *req;
	int err = client_request_new(w, &req, fd, name, by, arg);

	if (err)
		return err;
	req->inspected = done;
	req->brief = by && by->brief;
	req->item.later = by && by->rest;
	if (req->lane == LANE_CLEAN && req->item.later)
		req->lane = LANE_REST;
	else if (req->lane == LANE_CLEAN && req->item.bytes > LARGE)
		req->lane = LANE_LARGE;
	return client_enqueue(w, req);
}

/* The descriptor, or -1 if its file is neither clean nor of the file's owner: that owner could
 * choose the names of the file's functions, and the worker reads files of one owner only. */
static int accepted(const struct worker *w, const struct client_request *req, int fd)
{
	struct owner_file f;

	if (fd < 0 || owner_of(&w->devices, fd, &f))
		return -1;
	if (f.owner.clean || owner_equal(&f.owner, &req->file.owner))
		return fd;
	log_debug("%s: its debug file belongs to another user, and is not used", req->name);
	return -1;
}

int worker_symbolize(struct worker *w, const struct worker_symbolization *s,
		     const struct worker_requester *by, worker_symbolized *done, void *arg)
{
	struct client_request *req;
	int err;

	if (s->n > SYMBOLIZE_MAX_ADDRESSES)
		return -E2BIG;
	err = client_request_new(w, &req, s->fd, s->name, by, arg);
	if (err)
		return err;
	req->symbolized = done;
	req->fds[1] = s->debug_fetched ? s->debug_fd : accepted(w, req, s->debug_fd);
	req->fds[2] = s->alt_fetched ? s->alt_fd : accepted(w, req, s->alt_fd);
	if (s->debug_fetched ||
	    s->alt_fetched) { /* a malicious server may control the process then */
		req->file.owner.fetched = true;
		req->lane = LANE_OTHERS;
	}
	req->inlines = s->inlines;
	req->keyed = s->inspection;
	if (s->inspection)
		memcpy(req->key, s->inspection->key, sizeof(req->key));
	req->len = (uint64_t)s->n * 8;
	req->payload = malloc(req->len ? req->len : 1);
	if (!req->payload) {
		client_request_free(req);
		return -ENOMEM;
	}
	memcpy(req->payload, s->addresses, req->len);
	return client_enqueue(w, req);
}

/* ---- the object ---- */

int worker_wait_until(struct worker *w, uint64_t deadline_ns)
{
	while (w->pending) {
		struct pollfd p = {.fd = w->poller.epoll, .events = POLLIN};
		uint64_t now = clock_now();

		if (deadline_ns && now >= deadline_ns)
			return -ETIMEDOUT;
		if (poll(&p, 1, deadline_ns ? (int)((deadline_ns - now) / 1000000) + 1 : -1) < 0 &&
		    errno != EINTR)
			return -errno;
		worker_dispatch(w);
	}
	return 0;
}

uint32_t worker_pending(const struct worker *w)
{
	return w->pending;
}

int worker_pid(const struct worker *w)
{
	int pid = 0;

	for (int i = 0; i < POOL_SLOTS; i++)
		if (w->slots[i].child.pid && (!pid || w->slots[i].current))
			pid = w->slots[i].child.pid;
	return pid;
}

uint64_t worker_cpu_ns(const struct worker *w)
{
	struct opener_counts opener;
	uint64_t ns;

	opener_counts(w->opener, &opener);
	ns = opener.cpu_ns;
	for (int i = 0; i < POOL_SLOTS; i++)
		ns += spawn_cpu_ns(w->slots[i].child.pid);
	for (int i = 0; i < POOL_DYING; i++)
		ns += spawn_cpu_ns(w->dying[i].child.pid);
	return ns;
}

int worker_fd(const struct worker *w)
{
	return w->poller.epoll;
}

void worker_refused(const struct worker *w, worker_refusal *each, void *arg)
{
	for (const struct refusal *r = w->refusals.first; r; r = r->next)
		each(arg, r->name, r->text, !r->err);
}

static void open_cache(struct worker *w, const char *dir)
{
	int err = cache_open(&w->cache, dir, CACHE_DEFAULT_BYTES);
	struct buf refusals = {0};
	struct stat st;

	if (stat("/proc/self/exe", &st))
		st = (struct stat){0};
	w->stamp = (uint64_t)st.st_mtim.tv_sec * 1000003 + (uint64_t)st.st_mtim.tv_nsec +
		   (uint64_t)st.st_size;
	snprintf(w->refusals_name, sizeof(w->refusals_name), "refusals-%" PRIx64, w->stamp);
	if (!err && !cache_text(w->cache, w->refusals_name, &refusals) &&
	    !buf_add(&refusals, "", 1))
		refusals_read(&w->refusals, refusals.p);
	buf_fini(&refusals);

	if (!err && asprintf(&w->fetch_folder, "%s/debuginfod", dir) < 0)
		w->fetch_folder = NULL;
	if (err) /* without a cache the worker is slower, not wrong */
		log_warning("'%s' cannot hold the cache of unwind tables: %s; going on without",
			    dir,
			    err == -EPERM ? "it must be yours, and not writable by others"
					  : strerror(-err));
}

/* The folder of the plugins, then name and options of each unwinder that has options. */
static int make_arguments(struct worker *w, const struct worker_options *o)
{
	uint32_t n = 0, unwinders = o->unwinders ? o->unwinders->n : 0;

	w->arguments = calloc(2 + 2 * (size_t)unwinders, sizeof(*w->arguments));
	if (!w->arguments)
		return -ENOMEM;
	if (!o->plugin_dir)
		return 0;
	w->arguments[n++] = strdup(o->plugin_dir);
	for (uint32_t i = 0; i < unwinders && n + 2 <= CHILD_MAX_ARGUMENTS; i++) {
		const struct fusee_instance *in = o->unwinders->instances[i];

		if (!in->given || !*in->given)
			continue;
		w->arguments[n++] = strdup(in->descriptor->name);
		w->arguments[n++] = strdup(in->given);
	}
	for (uint32_t i = 0; i < n; i++)
		if (!w->arguments[i])
			return -ENOMEM;
	return 0;
}

struct opener *worker_opener(const struct worker *w)
{
	return w ? w->opener : NULL;
}

int worker_set_servers(struct worker *w, const char *servers, uint32_t file_ms,
		       void (*arrived)(void *arg, const uint8_t *build_id, uint32_t len), void *arg)
{
	int err = 0;

	if (!w->fetcher && *servers) {
		err = fetcher_new(&w->fetcher, w->fetch_folder);
		if (!err)
			err = poller_add(&w->poller, fetcher_fd(w->fetcher));
		if (err) {
			fetcher_free(w->fetcher);
			w->fetcher = NULL;
		}
	}
	return err || !w->fetcher ? err
				  : fetcher_set_servers(w->fetcher, servers, file_ms, arrived, arg);
}

struct fetcher *worker_fetcher(const struct worker *w)
{
	return w ? w->fetcher : NULL;
}

struct background *worker_background(const struct worker *w)
{
	return w ? w->background : NULL;
}

int worker_new(struct worker **ret, const struct worker_options *o)
{
	struct worker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->poller = (struct poller){-1, -1};
	w->memory_limit = o->memory_limit;
	w->idle_ms = o->idle_ms ? o->idle_ms : DEFAULT_IDLE_MS;
	w->request_ms = o->request_ms ? o->request_ms : DEFAULT_REQUEST_MS;
	w->unwinders = o->unwinders;
	pool_init(w);
	for (int i = 0; i < LANES; i++)
		turns_init(&w->queues[i], i < LANE_STEP_CLEAN ? MAX_REQUESTS : MAX_STEPS);
	owner_find_devices(&w->devices);
	err = background_new(&w->background);
	if (!err)
		err = make_arguments(w, o);
	if (!err)
		err = poller_open(&w->poller);
	if (!err && o->opener)
		err = opener_new(&w->opener);
	if (!err && w->opener) /* its descriptor is readable when the worker's is */
		err = poller_add(&w->poller, opener_fd(w->opener));
	if (err) {
		worker_stop(w);
		return err;
	}
	if (o->cache_dir)
		open_cache(w, o->cache_dir);
	*ret = w;
	return 0;
}

void worker_stop(struct worker *w)
{
	if (!w)
		return;
	client_cancel_all(w);
	pool_stop(w);
	opener_free(w->opener);
	fetcher_free(w->fetcher);
	for (int i = 0; i < LANES; i++)
		turns_fini(&w->queues[i]);
	refusals_fini(&w->refusals);
	hashmap_fini(&w->names);
	cache_close_later(w->background, w->cache);
	background_free(w->background);
	poller_close(&w->poller);
	for (uint32_t i = 0; w->arguments && w->arguments[i]; i++)
		free(w->arguments[i]);
	free(w->arguments);
	free(w->fetch_folder);
	free(w);
}
