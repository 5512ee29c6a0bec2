/* SPDX-License-Identifier: Apache-2.0 */
#include "executables/internal/debug_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/background.h"
#include "base/log.h"
#include "opener/opener.h"

struct debug_request {
	struct debug_request *next;
	struct debug_requests *owner; /* NULL: it was removed, and is freed when it is answered */
	struct worker *worker;        /* borrowed */
	uint8_t id[64];
	uint32_t len; /* bytes of id */
	int fd;       /* -1: it is the caller's now */
	struct stat st;
	bool answered;
	int err;        /* of the answer: 0, -ENOENT, -EAGAIN */
	uint32_t flags; /* of the debug file: enum inspection_flags */
};

void debug_requests_init(struct debug_requests *d, void (*answered)(void *arg), void *arg)
{
	*d = (struct debug_requests){.answered = answered, .arg = arg};
}

static void free_request(struct debug_request *r)
{
	if (r->fd >= 0)
		background_close(worker_background(r->worker), r->fd);
	free(r);
}

/* A request that the worker has not answered is freed later, as the worker still uses its
 * descriptor. */
static void remove_request(struct debug_requests *d, struct debug_request **at)
{
	struct debug_request *r = *at;

	*at = r->next;
	d->n--;
	if (r->answered)
		free_request(r);
	else
		r->owner = NULL;
}

void debug_requests_fini(struct debug_requests *d)
{
	while (d->first)
		remove_request(d, &d->first);
}

static struct debug_request **find(struct debug_requests *d, const struct inspection *i)
{
	struct debug_request **at = &d->first;

	while (*at && ((*at)->len != i->build_id_len || memcmp((*at)->id, i->build_id, (*at)->len)))
		at = &(*at)->next;
	return at;
}

/* ---- the worker's answer ---- */

/* Whether the file itself is the cause of the error, so that the next request would fail too. */
static bool is_final(int err)
{
	return err == -ENOEXEC || err == -EBADMSG || err == -EFAULT || err == -ETIMEDOUT;
}

static void answered(void *arg, int err, const char *text, struct inspection *i)
{
	struct debug_request *r = arg;
	struct debug_requests *d = r->owner;

	r->answered = true;
	if (i && i->build_id_len == r->len && !memcmp(i->build_id, r->id, r->len)) {
		r->flags = i->flags;
	} else if (i) {
		log_debug("a debug file is not sent: its build ID is not the program's");
		r->err = -ENOENT;
	} else {
		log_debug("a debug file is not sent: %s", *text ? text : strerror(-err));
		r->err = is_final(err) ? -ENOENT : -EAGAIN;
	}
	inspection_unref(i);
	if (d)
		d->answered(d->arg);
	else
		free_request(r);
}

/* ---- a request ---- */

/* Removes the oldest request with an answer if the list is full. false: none has an answer. */
static bool make_room(struct debug_requests *d)
{
	struct debug_request **oldest = NULL;

	if (d->n < DEBUG_REQUESTS_MAX)
		return true;
	for (struct debug_request **at = &d->first; *at; at = &(*at)->next)
		if ((*at)->answered)
			oldest = at;
	if (oldest)
		remove_request(d, oldest);
	return oldest;
}

/* The names were chosen by the target, or by whoever wrote the file. Returns a descriptor or
 * -errno.
 */
static int open_debug(struct file *f, uid_t owner, struct stat *st)
{
	const struct opener_query q = {.kind = OPENER_DEBUG,
				       .pid = f->pid,
				       .path = f->path,
				       .build_id = f->inspection->build_id,
				       .build_id_len = f->inspection->build_id_len,
				       .link = f->inspection->debuglink};
	struct opener_answer a;
	int err = opener_call(worker_opener(f->files->worker), &q, &a);

	/* -ENOBUFS: its file system can keep readers waiting, and the opener copies no debug files
	 */
	if (err)
		return err != -ENOBUFS && opener_is_temporary(err) ? -EAGAIN : -ENOENT;
	if (a.st.remote)
		err = -EREMOTE;
	else if (fstat(a.fd, st))
		err = -errno;
	else if (st->st_uid != owner && (st->st_uid || st->st_mode & (S_IWGRP | S_IWOTH)))
		err = -ENOENT; /* another user's */
	if (err)
		background_close(worker_background(f->files->worker), a.fd);
	return err ? err : a.fd;
}

/* 0: the worker is reading the debug file. */
static int begin(struct debug_requests *d, struct file *f, uid_t owner)
{
	const struct worker_requester by = {.uid = f->uid, .pid = f->pid};
	struct debug_request *r;
	char name[512];
	int err;

	if (!make_room(d))
		return -EAGAIN;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -EAGAIN;
	r->worker = f->files->worker;
	r->len = f->inspection->build_id_len;
	memcpy(r->id, f->inspection->build_id, r->len);
	r->fd = open_debug(f, owner, &r->st);
	snprintf(name, sizeof(name), "%s (its debug file)", f->path);
	err = r->fd < 0 ? r->fd : worker_inspect(r->worker, r->fd, name, &by, answered, r);
	if (err) {
		err = r->fd < 0 ? err : -EAGAIN;
		free_request(r);
		return err;
	}
	r->owner = d;
	r->next = d->first;
	d->first = r;
	d->n++;
	return 0;
}

/* The descriptor of a request with an answer, or -errno. */
static int take(struct debug_request *r, bool named, uint64_t max_bytes)
{
	const uint32_t useful = INSPECTION_DWARF | (named ? 0 : INSPECTION_SYMTAB);
	struct stat st;
	int fd = r->fd;

	if (r->err)
		return r->err;
	if (!(r->flags & useful))
		return -ENOENT;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_size != r->st.st_size || st.st_mtim.tv_sec != r->st.st_mtim.tv_sec ||
	    st.st_mtim.tv_nsec != r->st.st_mtim.tv_nsec)
		return -ESTALE;
	if ((uint64_t)st.st_size > max_bytes)
		return -EFBIG;
	r->fd = -1;
	return fd;
}

int debug_requests_find(struct debug_requests *d, struct file *f, uid_t owner, bool named,
			uint64_t max_bytes)
{
	struct debug_request **at = find(d, f->inspection);
	int err;

	if (!*at) {
		err = begin(d, f, owner);
		return err ? err : -EINPROGRESS;
	}
	if (!(*at)->answered)
		return -EINPROGRESS;
	err = take(*at, named, max_bytes);
	remove_request(d, at);
	return err;
}
