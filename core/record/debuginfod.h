/* SPDX-License-Identifier: Apache-2.0 */
/* The option --debuginfod: names of functions from debuginfod servers. */
#ifndef RECORD_DEBUGINFOD_H
#define RECORD_DEBUGINFOD_H

#include "console/options.h"
#include "record/session.h"

#define DEBUGINFOD_WAIT_NS UINT64_C(60000000000)

/* Sets session_options.servers from the option's value: servers, or "env". 0 or EX_USAGE after an
 * error was logged. */
int debuginfod_set(const struct cli_command *, struct session_options *, const char *value);
/* After the profiler was opened. 0, or an exit code after an error was logged. */
int debuginfod_open(struct session *);
/* Fetches debug files that the collector's files lack, and requests the symbols of these files
 * again, until the option's time is over or a signal comes. To be called after a first request for
 * the symbols. 0 or -errno. */
int debuginfod_wait(struct session *, const struct collector *);
/* Prints which files were fetched, and why others were not. */
void debuginfod_print(const struct session *);
#endif
