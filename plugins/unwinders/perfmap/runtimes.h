/* SPDX-License-Identifier: Apache-2.0 */
/* Run times that write perf maps, and what makes them do it. */
#ifndef PERFMAP_RUNTIMES_H
#define PERFMAP_RUNTIMES_H

#include <fusee/plugin.h>

#define PERFMAP_RUNTIMES 6

extern const struct fusee_runtime perfmap_runtimes[PERFMAP_RUNTIMES];
#endif
