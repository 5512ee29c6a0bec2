/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files of this machine for requests of sinks, for programs without debug information. The
 * opener opens a debug file, as targets chose its name, and the worker reads its build ID. A sink
 * may stop waiting before the worker has answered, so the answer and its open descriptor are kept
 * for the sink's next request: DEBUG_REQUESTS_MAX of them at most. For the control thread.
 */
#ifndef EXECUTABLES_DEBUG_FILES_H
#define EXECUTABLES_DEBUG_FILES_H

#include <stdint.h>
#include <sys/types.h>

#include "files/files.h"

#define DEBUG_REQUESTS_MAX 8u

struct debug_request;

struct debug_requests {
	struct debug_request *first; /* newest first */
	uint32_t n;
	void (*answered)(void *arg); /* called when the worker has answered a request */
	void *arg;
};

/* answered() is called by worker_dispatch(), on the control thread. */
void debug_requests_init(struct debug_requests *, void (*answered)(void *arg), void *arg);
/* To be called before the worker is stopped; requests may be without an answer. */
void debug_requests_fini(struct debug_requests *);
/*
 * A descriptor of the debug file, which the caller closes. The debug file has the build ID of the
 * inspected file, at most max_bytes, and debug information; a symbol table is enough if `named` is
 * false, so that the file itself names no functions. It belongs to root or to `owner`.
 * -EINPROGRESS: the worker is reading it; -EAGAIN: try later; -ENOENT: there is none; -EFBIG;
 * -EREMOTE: it is on a file server; -ESTALE: it has changed since.
 */
int debug_requests_find(struct debug_requests *, struct file *, uid_t owner, bool named,
			uint64_t max_bytes);
#endif
