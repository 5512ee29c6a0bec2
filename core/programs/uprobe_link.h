/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of programs to many places of a file at once, which the kernel puts and removes together:
 * it waits once for all of them, where it waits for each event of its own. For one thread.
 */
#ifndef PROGRAMS_UPROBE_LINK_H
#define PROGRAMS_UPROBE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_object;

/* Types of enum bpf_attach_type that libbpf may not know. */
enum uprobe_link_type {
	UPROBE_EVENTS = 0,   /* no such link: each place has an event */
	UPROBE_MULTI = 48,   /* BPF_TRACE_UPROBE_MULTI, Linux 6.6 */
	UPROBE_SESSION = 57, /* BPF_TRACE_UPROBE_SESSION, Linux 6.13 */
};

struct uprobe_places {
	const uint64_t *offsets;  /* in the file */
	const uint64_t *cookies;  /* NULL: none */
	const uint64_t *counters; /* offsets of those who watch a place, 0: none; NULL: none */
	uint32_t n;
	bool returns; /* of the functions that begin there */
};

/* Sets the type of all programs at uprobes of an object that is not loaded: a program calls only
 * programs of its own type. */
void uprobe_link_set_type(struct bpf_object *, enum uprobe_link_type);
/* Links a program of this type. pid: of the process whose probes they are, which is known by its
 * first thread; <= 0: all. Returns a descriptor or -errno. */
int uprobe_link_create(enum uprobe_link_type, int program, pid_t pid, const char *path,
		       const struct uprobe_places *);
/* Has the kernel links of sessions? program: of that type. */
bool uprobe_link_has_sessions(int program);
/* Has it links of many places that are of one process? Those of the first such kernels were of one
 * thread. */
bool uprobe_link_has_multi(void);
/* -errno of a probe that libbpf did not attach by an event. Without free descriptors it takes the
 * kernel for one without cookies (-EOPNOTSUPP): then what it lacked. */
int uprobe_link_error(int err);
#endif
