/* SPDX-License-Identifier: Apache-2.0 */
/* --debuginfod of a recording: names from servers that the user named. */
#ifndef RECORD_DEBUGINFOD_H
#define RECORD_DEBUGINFOD_H

#include "base/buf.h"
#include "console/options.h"
#include "record/session.h"

#define DEBUGINFOD_WAIT_NS UINT64_C(60000000000)

/* Sets session_options.servers from the option's value: servers, or "env". 0 or EX_USAGE after an
 * error was logged. */
int debuginfod_set(const struct cli_command *, struct session_options *, const char *value);
/* After the profiler was opened. 0, or an exit code after an error was logged. */
int debuginfod_open(struct session *);
/* Fetches what the collector's files lack and requests their symbols again, until the time that was
 * given is over or a signal comes. Its symbols were requested before. 0 or -errno. */
int debuginfod_wait(struct session *, const struct collector *);
/* Prints what came and what did not. */
void debuginfod_print(const struct session *);
/* Appends a command line's option with a server that is likely to have the names of this file,
 * which this recording did not request. false: none is known. */
bool debuginfod_hint(const struct session *, const char *path, struct buf *);
#endif
