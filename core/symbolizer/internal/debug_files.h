/* SPDX-License-Identifier: Apache-2.0 */
/* The separate debug file and the dwz file of one file, open during one request to the worker. Each
 * is a file of this machine, or else of a debuginfod server. For one thread. */
#ifndef SYMBOLIZER_INTERNAL_DEBUG_FILES_H
#define SYMBOLIZER_INTERNAL_DEBUG_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/debug_files.h"
#include "files/files.h"
#include "worker/worker.h"

enum { DEBUG_FILE, ALT_FILE };

/* How long one request repeats queries that the opener does not answer in time. */
struct debug_patience {
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: queries are not repeated */
	bool ended;        /* that time is over, which was logged */
};

struct debug_files {
	struct worker *worker; /* borrowed */
	int debug_fd, alt_fd;  /* -1: none */
	uint8_t id[2][64];     /* build IDs of files of a server, by DEBUG_FILE and ALT_FILE */
	uint32_t id_len[2];    /* 0: the file is not a server's */
	bool no_fetched;       /* files of servers are not used */
	bool late[2];          /* the opener has not opened it in time: it may exist */
	struct debug_patience *patience; /* borrowed */
};

/* waits: whether the request may wait for the opener. */
struct debug_patience debug_patience_of(bool waits);
void debug_files_init(struct debug_files *, struct worker *, struct debug_patience *);
/* files_hold(), which is repeated as the other queries. A file that is not opened in time is
 * counted. */
int debug_files_hold(struct debug_files *, struct file *);
void debug_files_close(struct debug_files *);
/* Counts a file that has fewer names in a window than it could have; reason: what is late. */
void debug_files_count_late(const char *reason);
/* Opens the debug file of a file that has no debug information itself. */
void debug_files_open(struct debug_files *, const struct file *);
/* Opens the dwz file that the debug information names. The name is not trusted: serve.c of
 * core/opener has the folders in which it is searched. */
void debug_files_open_alt(struct debug_files *, const struct file *, const char *name,
			  const uint8_t *id, uint32_t len);
/* Closes files of a server after a request failed with err. false: there were none, or the request
 * was cancelled. *never (NULL is fine) becomes true if the worker died, found them inconsistent or
 * took too long: this file is not to be symbolized with files of servers again. Other files of the
 * same build ID still are, as the fault may be this file's. */
bool debug_files_drop_fetched(struct debug_files *, int err, bool *never);
#endif
