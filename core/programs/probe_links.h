/* SPDX-License-Identifier: Apache-2.0 */
/* Probes that are in place: links of programs, and what says that they have ended. For one thread,
 * but for what is said. */
#ifndef PROGRAMS_PROBE_LINKS_H
#define PROGRAMS_PROBE_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "programs/uprobe_link.h"
#include "symbols/probe_points.h"

struct bpf_link;

/* Probes of a process end with the thread whose memory the kernel took them to be of: its first, or
 * another if that had ended, which is also so if another thread has exec'ed in its place; or,
 * where memory is followed, with the process. `watch` has POLLHUP or POLLIN then. Links of many
 * places stay where the first thread ends and others go on. */
struct probe_links {
	struct bpf_link **at; /* a place each */
	size_t n, cap;
	int *many; /* descriptors of links, each of many places */
	size_t nmany, many_cap;
	int watch; /* an event of a thread, or a process; -1: none */
	void *ring;
	bool leaderless; /* the first thread has ended meanwhile */
};

#define PROBE_LINKS_NONE ((struct probe_links){.watch = -1})

/* Where probes are put: a file, of one process or of all (-1). */
struct probe_where {
	struct probe_links *links;
	pid_t pid;
	const char *path;
};

/* A program of links of many places. */
struct probe_linked {
	enum uprobe_link_type type;
	int program;
	enum probe_program of; /* the points that it is linked to */
	bool returns;          /* of the functions that begin there */
};

/* The number of a point, the i-th of its list. */
uint64_t probe_links_number(const struct probe_point *, size_t i);
/* The cookie of a place, by which its program knows it; number: of the place. */
uint64_t probe_links_cookie(const struct probe_point *, uint64_t number);
/* Adds a link's descriptor, or closes it. 0 or -errno; fd: that, too. */
int probe_links_add(struct probe_links *, int fd);
/* Links a program to its points; there may be none. 0 or -errno. */
int probe_links_put(const struct probe_linked *, const struct probe_points *,
		    const struct probe_where *);
/* Watches a thread, or a process. 0 or -errno. */
int probe_links_watch(struct probe_links *, pid_t thread);
int probe_links_watch_process(struct probe_links *, pid_t);
void probe_links_close_watch(struct probe_links *);
#endif
