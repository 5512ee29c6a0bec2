// SPDX-License-Identifier: Apache-2.0
#include "sampling/debug_files.h"

#include <errno.h>
#include <string.h>

#include "base/background.h"
#include "worker/fetcher.h"
#include "worker/opener.h"

void debug_files_init(struct debug_files *d, struct worker *worker)
{
	*d = (struct debug_files){.worker = worker, .debug_fd = -1, .alt_fd = -1};
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

/* fd or -1. */
static int open_one(struct debug_files *d, const struct file *file, struct opener_query *what,
		    int which)
{
	struct opener_answer a;

	what->pid = file->pid;
	if (!opener_call(worker_opener(d->worker), what, &a))
		return a.fd;
	if (d->no_fetched)
		return -1;
	a.fd = fetcher_open(worker_fetcher(d->worker), what->build_id, what->build_id_len,
			    file->path);
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
