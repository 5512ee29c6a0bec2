/* SPDX-License-Identifier: Apache-2.0 */
/* Which debug files a window lacks, requested from the debuginfod servers that the user named. For
 * one thread. */
#ifndef SAMPLING_FETCHING_H
#define SAMPLING_FETCHING_H

#include <stdint.h>

#include "profiler/profiler.h"

/* Files with less than 1 / FETCHING_LEAST of the samples are not requested. */
#define FETCHING_LEAST 200u

/* Servers for this profiler, as worker_set_servers() says. What comes is used by the next
 * symbolizer_request(). 0; -ENOENT: there is no cache to keep files in; -errno. */
int fetching_set_servers(struct profiler *, const char *servers, uint32_t file_ms);
/* Requests the debug files, and dwz files of these, of all files without function names in which
 * samples of the collector are, those with most samples first. Its symbols were requested before.
 * Costs nothing without servers. Returns how many files are pending in all. */
uint32_t fetching_request(struct profiler *, const struct collector *);
#endif
