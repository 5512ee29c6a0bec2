/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the name of a perf map's entry, as runtimes write it, into function, file and line. */
#ifndef PERFMAP_NAMES_H
#define PERFMAP_NAMES_H

#include <fusee/plugin.h>

/* Fills function, system_name (the complete text), file and line; texts point into name. */
void names_split(const char *name, uint32_t len, struct fusee_source_frame *);
#endif
