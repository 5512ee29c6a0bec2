/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that `perf script` prints for the samples of a perf.data file, as a profile. The format
 * has no specification; tools/perf/builtin-script.c of the kernel's source prints it:
 *
 *     comm pid[/tid] [cpu] time: period event: [address symbol+0xoffset (dso)]
 *             address symbol+0xoffset (dso)
 *
 * The lines of a sample end with an empty line; the innermost frame comes first.
 */
#ifndef IMPORT_PERF_SCRIPT_H
#define IMPORT_PERF_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/builder.h"

/* true: the first line that is not empty or a comment is the first line of a sample. */
bool perf_script_is(const char *text, size_t len);

/*
 * Adds all samples to an empty builder and sets its value types: samples/count, and the periods of
 * each event; cpu-clock and task-clock are cpu/nanoseconds. Each sample has the label `thread`, its
 * comm. Lines that are neither a sample's nor a frame's are counted in a comment of the profile. 0,
 * -ENOMEM, or -EINVAL: then *error is a sentence, which is static.
 */
int perf_script_read(struct builder *, const char *text, size_t len, const char **error);
#endif
