/* SPDX-License-Identifier: Apache-2.0 */
/* What runtimes write into the name of a perf map's entry: where the function's own name and its
 * file stand. */
#ifndef PERFMAP_NAMES_H
#define PERFMAP_NAMES_H

#include <fusee/plugin.h>

/* Fills function, system_name (the whole text), file and line; texts point into name. */
void names_split(const char *name, uint32_t len, struct fusee_source_frame *);
#endif
