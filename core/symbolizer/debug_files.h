/* SPDX-License-Identifier: Apache-2.0 */
/* The separate debug file and the dwz file of one file, open for one request to the worker: those
 * of the machine, else what was fetched from a debuginfod server. For one thread. */
#ifndef SYMBOLIZER_DEBUG_FILES_H
#define SYMBOLIZER_DEBUG_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/files.h"
#include "worker/worker.h"

enum { DEBUG_FILE, ALT_FILE };

/* Of one request: until when queries without an answer in time are repeated. */
struct debug_patience {
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: they are not */
	bool ended;        /* and that was logged */
};

struct debug_files {
	struct worker *worker; /* borrowed */
	int debug_fd, alt_fd;  /* -1: none */
	uint8_t id[2][64];     /* build IDs of what was fetched, by DEBUG_FILE and ALT_FILE */
	uint32_t id_len[2];    /* 0: it was not */
	bool no_fetched;       /* what was fetched is not used */
	bool late[2];          /* the opener has not opened it in time: it may be there */
	struct debug_patience *patience; /* borrowed */
};

/* For a request that may wait, or must not. */
struct debug_patience debug_patience_of(bool waits);
void debug_files_init(struct debug_files *, struct worker *, struct debug_patience *);
/* files_hold(); what is not opened in time is counted here as below. */
int debug_files_hold(struct debug_files *, struct file *);
void debug_files_close(struct debug_files *);
/* Counts a file that has fewer names in a window than it could have; reason: what is late. */
void debug_files_count_late(const char *reason);
/* How often files were not opened in time, in all. */
uint64_t debug_files_late(void);
/* Opens the debug file of a file that has no debug information itself. */
void debug_files_open(struct debug_files *, const struct file *);
/* Opens the dwz file that its debug information names. The name is not trusted: opener.h says where
 * it is looked for. */
void debug_files_open_alt(struct debug_files *, const struct file *, const char *name,
			  const uint8_t *id, uint32_t len);
/* Closes those of a server after a request's error. false: there were none, or it was canceled.
 * *never (NULL is fine) becomes true if a worker did not survive them with the file, or found them
 * inconsistent: the fault may be this file's, so others of its build ID keep them. */
bool debug_files_drop_fetched(struct debug_files *, int err, bool *never);
#endif
