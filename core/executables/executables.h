/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of targets for sinks, by build ID. A sink calls open_file() of struct fusee_sink_host on
 * its own thread, which waits for FILE_REQUESTS_NS at most; the control thread, which knows the
 * files, answers. The answer for a file without debug information is its debug file, if this
 * machine has one with more names.
 */
#ifndef EXECUTABLES_EXECUTABLES_H
#define EXECUTABLES_EXECUTABLES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

#include "executables/internal/debug_files.h"
#include "net/loop.h"
#include "profiler/profiler.h"

#define FILE_REQUESTS_NS 1000000000ull

struct file_requests {
	struct loop *loop; /* these two are borrowed; NULL: no request is served */
	struct profiler *profiler;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct file_request *first; /* of all that wait */
	struct debug_requests debug;
	bool closed;
};

void file_requests_init(struct file_requests *);
/* Before the first sink is made. */
void file_requests_set(struct file_requests *, struct loop *, struct profiler *);
/* All requests, and all later requests, end with -ECANCELED. */
void file_requests_close(struct file_requests *);
void file_requests_fini(struct file_requests *); /* no thread makes requests any more */
/* For struct delivery_files. [any thread but the control thread] */
int file_requests_open_file(void *requests, struct fusee_str build_id, uint64_t max_bytes);
/* The same on the control thread, which does not wait. -EINPROGRESS: the worker is reading the
 * debug file; a later call has the answer. */
int file_requests_find(struct file_requests *, struct files *, const uint8_t *build_id,
		       uint32_t len, uint64_t max_bytes);
#endif
