// SPDX-License-Identifier: Apache-2.0
/* Tables of names: which are kept on disk, and when one is made. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "inspection/cache_later.h"
#include "names/names.h"
#include "worker/internal/client.h"
#include "worker/internal/protocol.h"

#define MOST_NOTED 65536u /* tables in worker.names */
#define AGAIN_S 3600u     /* until a table that was made, and is missing, is made again */
#define SMALL (1u << 20)  /* bytes of a file and its debug file, whose table is made at once */
/* Values of worker.names besides the second in which the table was made, plus 2. */
#define ONCE ((void *)1)              /* it was requested once */
#define NEVER ((void *)~(uintptr_t)0) /* it cannot be made */

static void count(const char *result)
{
	metric_add("name_tables_total",
		   "Total number of tables of functions and lines of files, by what became of "
		   "them: made by a worker, failed, found damaged.",
		   METRIC_LABELS("result", result), 1);
}

/* The identity of a debug or dwz file, if a table may be made of it. */
static int add_file(const struct worker *w, const struct owner_file *of, int fd, bool fetched,
		    struct owner_identity *ret)
{
	struct owner_file f;
	int err = fd < 0 ? 0 : owner_of(&w->devices, fd, &f);

	if (err || fd < 0)
		return err;
	if (fetched ||
	    !(f.owner.clean || (owner_is_kept(&f.owner) && owner_equal(&f.owner, &of->owner))))
		return -ENOTSUP;
	*ret = f.identity;
	return 0;
}

/* The key does not have the dwz file, as its debug file has that file's build ID. */
int worker_names_key(const struct worker *w, const struct worker_symbolization *s,
		     const struct worker_requester *by, uint8_t key[32])
{
	struct owner_identity debug = {0}, alt;
	struct owner_file f;
	int err = w->cache ? owner_of(&w->devices, s->fd, &f) : -ENOTSUP;

	if (!err && ((by && by->copy_of) || !owner_is_kept(&f.owner)))
		err = -ENOTSUP;
	if (!err)
		err = add_file(w, &f, s->debug_fd, s->debug_fetched, &debug);
	if (!err)
		err = add_file(w, &f, s->alt_fd, s->alt_fetched, &alt);
	if (!err)
		owner_names_key(&f.identity, &debug, w->stamp * 2 + s->inlines, key);
	return err;
}

void worker_names_remove(struct worker *w, const uint8_t key[32], int err)
{
	log_debug("a table of names is damaged: %s", strerror(-err));
	cache_remove(w->cache, key);
	count("damaged");
}

int worker_names_open(struct worker *w, const uint8_t key[32], struct names_table **ret)
{
	uint64_t at, bytes;
	int fd, err = w->cache ? cache_open_block(w->cache, key, NAMES_VERSION, &fd, &at, &bytes)
			       : -ENOENT;

	if (err)
		return err;
	err = names_open(ret, fd, at, bytes);
	if (err && err != -ENOMEM)
		worker_names_remove(w, key, err);
	return err;
}

/* ---- requests ---- */

static uint64_t start_of(const uint8_t key[32])
{
	uint64_t start;

	memcpy(&start, key, sizeof(start));
	return start;
}

static void note(struct worker *w, const uint8_t key[32], void *when)
{
	if (w->names.n >= MOST_NOTED)
		hashmap_fini(&w->names);
	hashmap_put(&w->names, start_of(key), when); /* without memory it is not made */
}

/* Whether the table is to be made now. Most files need a worker only once, and the table of a large
 * file takes a second, so it is made at the second request; a small file's table takes less than
 * the start of a worker. */
static bool is_due(struct worker *w, const uint8_t key[32], uint64_t bytes)
{
	void *when = hashmap_get(&w->names, start_of(key));
	uintptr_t now = (uintptr_t)(clock_now() / 1000000000u) + 2;

	if (when == ONCE || (!when && bytes <= SMALL) ||
	    (when && when != NEVER && now - (uintptr_t)when > AGAIN_S)) {
		note(w, key, (void *)now);
		return true;
	}
	if (!when)
		note(w, key, ONCE);
	return false;
}

int worker_names_make(struct worker *w, const struct worker_symbolization *s,
		      const struct worker_requester *by, worker_named *done, void *arg)
{
	struct client_request *req;
	uint8_t key[32];
	struct owner_file f, debug = {0};
	int err = worker_names_key(w, s, by, key);

	if (!err)
		err = owner_of(&w->devices, s->fd, &f);
	if (!err && s->debug_fd >= 0)
		err = owner_of(&w->devices, s->debug_fd, &debug);
	if (!err && !is_due(w, key, f.stored + debug.stored))
		err = -EAGAIN;
	if (!err)
		err = client_request_new(w, &req, s->fd, s->name, by, arg);
	if (err)
		return err;
	req->named = done;
	req->fds[1] = s->debug_fd;
	req->fds[2] = s->alt_fd;
	req->inlines = s->inlines;
	req->keyed = s->inspection;
	if (s->inspection)
		memcpy(req->key, s->inspection->key, sizeof(req->key));
	memcpy(req->names_key, key, sizeof(key));
	return client_enqueue(w, req);
}

/* Whether the files still have the key that they had when the table was requested. */
static bool is_unchanged(const struct worker *w, const struct client_request *req)
{
	struct owner_file f, debug = {0};
	uint8_t key[32];

	if (owner_of(&w->devices, req->fds[0], &f) ||
	    (req->fds[1] >= 0 && owner_of(&w->devices, req->fds[1], &debug)))
		return false;
	owner_names_key(&f.identity, &debug.identity, w->stamp * 2 + req->inlines, key);
	return !memcmp(key, req->names_key, sizeof(key));
}

int client_names_take(struct worker *w, const struct client_request *req,
		      const struct protocol_reply *r, int fd)
{
	const struct names_head *head;
	void *map;
	int err = fd < 0 ? -EBADMSG : protocol_map(fd, r->bytes, &map);

	if (err)
		return err;
	/* All else is checked when it is read. */
	head = map;
	if (r->bytes < sizeof(*head) || r->bytes > NAMES_MAX_BYTES || head->magic != NAMES_MAGIC ||
	    head->version != NAMES_VERSION || head->bytes != r->bytes) {
		munmap(map, r->bytes);
		return -EBADMSG;
	}
	if (!is_unchanged(w, req)) {
		munmap(map, r->bytes);
		return 0;
	}
	count("made");
	cache_store_block_later(w->background, w->cache, req->names_key, NAMES_VERSION, map,
				r->bytes, req->name);
	return 0;
}

void client_names_finish(struct worker *w, struct client_request *req, int err)
{
	if (err && err != -ECANCELED) {
		log_debug("%s: no table of names: %s", req->name, strerror(-err));
		count(err == -ENOTSUP || err == -EFBIG ? "not possible" : "failed");
		if (err == -ENOTSUP || err == -EFBIG)
			note(w, req->names_key, NEVER);
	}
	req->named(req->arg, err);
}
