/* SPDX-License-Identifier: Apache-2.0 */
/* Probes that a program has by macros of <sys/sdt.h>: its section .note.stapsdt says where they
 * are. For one thread. */
#ifndef PROBES_USDT_H
#define PROBES_USDT_H

#include "symbols/probe_points.h"

/* Adds the places of a probe, of PROBE_CALL. provider: NULL: of any. The file is read by a child
 * process without rights. 0; -ENOENT: it has none; or -errno; each with a sentence in *why,
 * malloc'ed or NULL. */
int usdt_find(struct probe_points *, const char *path, const char *provider, const char *name,
	      char **why);
#endif
