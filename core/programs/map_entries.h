/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a hash map of BPF programs. */
#ifndef PROGRAMS_MAP_ENTRIES_H
#define PROGRAMS_MAP_ENTRIES_H

#include <stddef.h>

/* Calls each() with all entries, whose sizes are these, until it does not return 0. Returns what it
 * has returned, or -errno. Entries that are added or removed meanwhile may be among them or not. */
int map_entries_each(int map, size_t key, size_t value,
		     int (*each)(void *arg, const void *key, const void *value), void *arg);
#endif
