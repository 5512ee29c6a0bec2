// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/internal/debug_files.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "fetcher/fetcher.h"
#include "opener/opener.h"

/* The longest wait of one request, for all of its files: a user's file system may never answer. */
#define WAIT_NS 5000000000ull
#define AGAIN_MS 50

struct debug_patience debug_patience_of(bool waits)
{
	return (struct debug_patience){.until_ns = waits ? clock_now() + WAIT_NS : 0};
}

void debug_files_init(struct debug_files *d, struct worker *worker, struct debug_patience *patience)
{
	*d = (struct debug_files){
		.worker = worker, .debug_fd = -1, .alt_fd = -1, .patience = patience};
}

/* After a temporary error of the opener, waits up to AGAIN_MS. false: the query is not to be
 * repeated. */
static bool again(struct debug_files *d, const struct file *file, int err)
{
	struct opener *o = worker_opener(d->worker);
	struct pollfd p = {.events = POLLIN};

	if (!o || !d->patience->until_ns || !opener_is_temporary(err))
		return false;
	if (clock_now() >= d->patience->until_ns) {
		if (!d->patience->ended)
			log_warning("names may be missing: '%s', and perhaps other files, could "
				    "not be opened in time",
				    file->path);
		d->patience->ended = true;
		return false;
	}
	p.fd = opener_fd(o);
	poll(&p, 1, AGAIN_MS);
	opener_dispatch(o);
	return true;
}

#define METRIC "symbols_late_total"
/* The files that the opener opens, as values of the metric's label. */
static const char *const reasons[] = {[DEBUG_FILE] = "debug file", [ALT_FILE] = "dwz file", "file"};

void debug_files_count_late(const char *reason)
{
	metric_add(METRIC,
		   "Total number of times that a file had fewer names in a window than it could "
		   "have, by what was late. It is tried again.",
		   METRIC_LABELS("reason", reason), 1);
}

uint64_t debug_files_late(void)
{
	double n = 0;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		n += metric_get(METRIC, METRIC_LABELS("reason", reasons[i]));
	return (uint64_t)n;
}

int debug_files_hold(struct debug_files *d, struct file *file)
{
	int r;

	do
		r = files_hold(file);
	while (r < 0 && again(d, file, r));
	if (r < 0 && opener_is_temporary(r))
		debug_files_count_late(reasons[2]);
	return r;
}

static void close_one(struct debug_files *d, int *fd)
{
	if (*fd >= 0)
		background_close(worker_background(d->worker), *fd);
	*fd = -1;
}

void debug_files_close(struct debug_files *d)
{
	close_one(d, &d->debug_fd);
	close_one(d, &d->alt_fd);
}

/* Opens one of the two files. Returns a descriptor or -1. */
static int open_one(struct debug_files *d, const struct file *file, struct opener_query *what,
		    int which)
{
	struct opener_answer a;
	int err;

	what->pid = file->pid;
	do
		err = opener_call(worker_opener(d->worker), what, &a);
	while (err && again(d, file, err));
	if (!err)
		return a.fd;
	a.fd = d->no_fetched ? -1
			     : fetcher_open(worker_fetcher(d->worker), what->build_id,
					    what->build_id_len, file->path);
	if (a.fd < 0 && opener_is_temporary(err)) {
		d->late[which] = true;
		debug_files_count_late(reasons[which]);
	}
	if (a.fd < 0)
		return -1;
	memcpy(d->id[which], what->build_id, what->build_id_len);
	d->id_len[which] = what->build_id_len;
	return a.fd;
}

void debug_files_open(struct debug_files *d, const struct file *file)
{
	const struct inspection *i = file->inspection;
	struct opener_query what = {.kind = OPENER_DEBUG,
				    .path = file->path,
				    .build_id = i->build_id,
				    .build_id_len = i->build_id_len,
				    .link = i->debuglink};

	if (!(i->flags & (INSPECTION_DWARF | INSPECTION_GO)))
		d->debug_fd = open_one(d, file, &what, DEBUG_FILE);
}

void debug_files_open_alt(struct debug_files *d, const struct file *file, const char *name,
			  const uint8_t *id, uint32_t len)
{
	struct opener_query what = {
		.kind = OPENER_ALT, .path = name, .build_id = id, .build_id_len = len};

	d->alt_fd = open_one(d, file, &what, ALT_FILE);
}

bool debug_files_drop_fetched(struct debug_files *d, int err, bool *never)
{
	if (err == -ECANCELED || !(d->id_len[DEBUG_FILE] || d->id_len[ALT_FILE]))
		return false;
	if (d->id_len[DEBUG_FILE])
		close_one(d, &d->debug_fd);
	if (d->id_len[ALT_FILE])
		close_one(d, &d->alt_fd);
	d->id_len[DEBUG_FILE] = d->id_len[ALT_FILE] = 0;
	if (never && (err == -EFAULT || err == -ETIMEDOUT || err == -EBADMSG)) {
		*never = true;
		fetcher_count_refused();
	}
	return true;
}
