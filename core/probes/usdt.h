/* SPDX-License-Identifier: Apache-2.0 */
/* Probes that a program has by macros of <sys/sdt.h>: its section .note.stapsdt says where they
 * are. For one thread. */
#ifndef PROBES_USDT_H
#define PROBES_USDT_H

#include "symbols/probe_points.h"

struct usdt_probe {
	const char *provider; /* NULL: any */
	const char *name;
	struct probe_filter filter; /* of filter_terms.described */
};

/* Adds the places of a probe. The file is read by a child process without rights. 0; -ENOENT: it
 * has none; -ENOTSUP: the filter's argument has a form that is not read; or -errno; each with a
 * sentence in *why, malloc'ed or NULL. */
int usdt_find(struct probe_points *, const char *path, const struct usdt_probe *, char **why);
/* The same of a file that is open, whose points have no path, in the background. The probe is
 * borrowed until it is freed. 0 or -errno. */
struct usdt_search;
int usdt_search_start(struct usdt_search **ret, int fd, const struct usdt_probe *);
/* -EINPROGRESS: it goes on. Else it has ended, as of usdt_find(); -ETIMEDOUT: the file did not
 * answer. Does not wait. */
int usdt_search_poll(struct usdt_search *, struct probe_points *, char **why);
void usdt_search_free(struct usdt_search *); /* ends it, which may wait a moment; NULL is fine */
#endif
