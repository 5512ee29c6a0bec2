/* SPDX-License-Identifier: Apache-2.0 */
#include "executables/executables.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "files/file_open.h"
#include "opener/opener.h"

#define MAX_ID 64u /* bytes of a build ID, as of struct inspection */
/* Sections with functions that the file does not export. */
#define NAMED (INSPECTION_SYMTAB | INSPECTION_DWARF | INSPECTION_GO | INSPECTION_DEBUGDATA)
/* Sections to which a debug file adds nothing. */
#define COMPLETE (INSPECTION_DWARF | INSPECTION_GO)

/* On the stack of the sink's thread, which waits for the result. */
struct file_request {
	struct file_request *next;
	uint8_t id[MAX_ID];
	uint32_t len;
	uint64_t max_bytes;
	int result;
	bool ended;
};

/* ---- on the control thread ---- */

static bool has_id(const struct file *f, const uint8_t *id, uint32_t len)
{
	return f && f->state == FILE_READY && f->inspection && f->source.readable &&
	       f->inspection->build_id_len == len && !memcmp(f->inspection->build_id, id, len);
}

static int names_of(const struct file *f)
{
	return f->inspection->flags & COMPLETE ? 2 : f->inspection->flags & NAMED ? 1 : 0;
}

/* Whether `a` is preferred of two files with the same build ID: root's file, as any user can write
 * a file with any build ID; then a file of this machine; then the file with more names. */
static bool is_better(const struct file *a, const struct file *b)
{
	if ((a->uid == 0) != (b->uid == 0))
		return a->uid == 0;
	if (a->source.remote != b->source.remote)
		return b->source.remote;
	return names_of(a) > names_of(b);
}

/* Checks that the descriptor is of the file that was inspected. Sets *st. 0; -ESTALE: it is another
 * file; -errno. */
static int check(const struct file *f, int fd, struct stat *st)
{
	struct opener_answer a = {.fd = fd};
	struct file_identity id;
	int err;

	if (fstat(fd, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -ESTALE;
	if (f->source.copied)
		return 0; /* a copy is sealed */
	err = opener_describe(&a);
	if (err)
		return err;
	id = file_identity_of(&a.st);
	return f->key_len != sizeof(id) || memcmp(f->key, &id, sizeof(id)) ? -ESTALE : 0;
}

/* A new descriptor for the sink: of the file, or of its debug file if that has more names. Or
 * -errno. */
static int open_held(struct file_requests *q, struct file *f, int held, uint64_t max_bytes)
{
	const uint32_t flags = f->inspection->flags;
	struct stat st;
	int fd, err = check(f, held, &st);

	if (err)
		return err;
	fd = flags & COMPLETE
		     ? -ENOENT
		     : debug_requests_find(&q->debug, f, st.st_uid, flags & NAMED, max_bytes);
	if (fd >= 0 || fd == -EINPROGRESS || fd == -EAGAIN)
		return fd;
	if (!(flags & NAMED))
		return fd == -ENOENT ? -ENODATA : fd;
	if ((uint64_t)st.st_size > max_bytes)
		return -EFBIG;
	fd = fcntl(held, F_DUPFD_CLOEXEC, 0);
	return fd >= 0 ? fd : errno == EMFILE ? -EAGAIN : -errno;
}

int file_requests_find(struct file_requests *q, struct files *fs, const uint8_t *id, uint32_t len,
		       uint64_t max_bytes)
{
	struct file *best = NULL;
	int held, fd;

	for (uint32_t i = 1; i < fs->n; i++)
		if (has_id(fs->all[i], id, len) && (!best || is_better(fs->all[i], best)))
			best = fs->all[i];
	if (!best)
		return -ENOENT;
	if (best->source.remote)
		return -EREMOTE;
	held = files_hold(best);
	if (held < 0)
		return opener_is_temporary(held) || held == -EDQUOT ? -EAGAIN
		       : held == -ESRCH || held == -ENOENT          ? -ENOENT
								    : held;
	fd = open_held(q, best, held, max_bytes);
	files_release(best);
	return fd;
}

/* Answers all requests, except those whose debug file the worker is still reading. */
static void serve(void *arg)
{
	struct file_requests *q = arg;
	struct file_request **at = &q->first, *r;

	pthread_mutex_lock(&q->lock);
	while (!q->closed && (r = *at)) {
		r->result = file_requests_find(q, pipeline_files(q->profiler->pipeline), r->id,
					       r->len, r->max_bytes);
		if (r->result == -EINPROGRESS) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->ended = true;
	}
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

void file_requests_init(struct file_requests *q)
{
	pthread_condattr_t attr;

	*q = (struct file_requests){.loop = NULL};
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->changed, &attr);
	pthread_condattr_destroy(&attr);
	debug_requests_init(&q->debug, serve, q);
}

void file_requests_set(struct file_requests *q, struct loop *loop, struct profiler *profiler)
{
	q->loop = loop;
	q->profiler = profiler;
}

void file_requests_close(struct file_requests *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

void file_requests_fini(struct file_requests *q)
{
	debug_requests_fini(&q->debug);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
}

/* ---- on a sink's thread ---- */

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes of lower-case hex; false: it is no build ID. */
static bool parse_id(struct fusee_str hex, struct file_request *r)
{
	if (!hex.len || hex.len % 2 || hex.len > 2 * sizeof(r->id))
		return false;
	for (uint64_t i = 0; i < hex.len; i += 2) {
		int high = digit(hex.p[i]), low = digit(hex.p[i + 1]);

		if (high < 0 || low < 0)
			return false;
		r->id[i / 2] = (uint8_t)(high << 4 | low);
	}
	r->len = (uint32_t)(hex.len / 2);
	return true;
}

/* Locked. Removes the request from the list if it is still in it. */
static void remove_request(struct file_requests *q, const struct file_request *r)
{
	for (struct file_request **at = &q->first; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			return;
		}
}

/* Locked. Waits until the request has an answer, all are cancelled, or its time is over. */
static void wait_for(struct file_requests *q, const struct file_request *r)
{
	const struct timespec at = clock_until(clock_now() + FILE_REQUESTS_NS);
	int err = 0;

	while (!r->ended && !q->closed && !err)
		err = pthread_cond_timedwait(&q->changed, &q->lock, &at);
}

int file_requests_open_file(void *requests, struct fusee_str build_id, uint64_t max_bytes)
{
	struct file_requests *q = requests;
	struct file_request r = {.max_bytes = max_bytes};

	if (!parse_id(build_id, &r))
		return -EINVAL;
	pthread_mutex_lock(&q->lock);
	if (!q->closed && q->loop && !loop_post(q->loop, serve, q)) {
		r.next = q->first;
		q->first = &r;
		wait_for(q, &r);
		remove_request(q, &r);
	}
	if (!r.ended)
		r.result = q->closed ? -ECANCELED : -EAGAIN;
	pthread_mutex_unlock(&q->lock);
	metric_add("sink_files_requested_total",
		   "Total number of files of targets that sinks requested, for servers that "
		   "symbolize.",
		   METRIC_LABELS("result", r.result < 0 ? "failed" : "opened"), 1);
	return r.result;
}
