/* SPDX-License-Identifier: Apache-2.0 */
/* Requests the debug files that a window lacks from the debuginfod servers that the user named. For
 * one thread. */
#ifndef SAMPLING_FETCHING_H
#define SAMPLING_FETCHING_H

#include <stdint.h>

#include "profiler/profiler.h"

/* Files with less than 1 / FETCHING_LEAST of the samples are not requested. */
#define FETCHING_LEAST 200u

/* Sets the servers of this profiler: worker_set_servers(). The next symbolizer_request() uses the
 * files that arrived. 0; -ENOENT: there is no cache to keep files in; -errno. */
int fetching_set_servers(struct profiler *, const char *servers, uint32_t file_ms);
/* Requests the debug files, and dwz files of these, of all files without function names in which
 * samples of the collector are, those with most samples first. Its symbols were requested before.
 * Costs nothing without servers. Returns how many files are pending in all. */
uint32_t fetching_request(struct profiler *, const struct collector *);
#endif
