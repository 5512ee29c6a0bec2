/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files of this machine for sinks' requests, of programs that have no debug information
 * themselves. The opener opens one, as its name is the target's choice, and the worker reads its
 * build ID; nothing waits for the worker. What has been answered is kept for the next request, with
 * an open descriptor, as a sink waits for a moment only: DEBUG_REQUESTS_MAX at most. For the
 * control thread.
 */
#ifndef EXECUTABLES_DEBUG_FILES_H
#define EXECUTABLES_DEBUG_FILES_H

#include <stdint.h>
#include <sys/types.h>

#include "unwind/files.h"

#define DEBUG_REQUESTS_MAX 8u

struct debug_request;

struct debug_requests {
	struct debug_request *first; /* newest first */
	uint32_t n;
	void (*answered)(void *arg); /* the worker has answered about one of them */
	void *arg;
};

/* The callback is called on the control thread, as worker_dispatch() calls. */
void debug_requests_init(struct debug_requests *, void (*answered)(void *arg), void *arg);
/* Also while the worker reads one of them; before the worker is stopped. */
void debug_requests_fini(struct debug_requests *);
/*
 * A descriptor for the caller, of a regular file of at most max_bytes with the build ID of the
 * inspected file and with debug information; symbols are enough if the file has no names of its own
 * functions. It belongs to root or to `owner`. -EINPROGRESS: the worker reads it. -EAGAIN: later.
 * -ENOENT: there is none. -EFBIG; -EREMOTE: it is a file server's; -ESTALE: it has changed since.
 */
int debug_requests_find(struct debug_requests *, struct file *, uid_t owner, bool named,
			uint64_t max_bytes);
#endif
