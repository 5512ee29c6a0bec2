/* SPDX-License-Identifier: Apache-2.0 */
/* Where probes are: places in files, found by the names of functions. For one thread. */
#ifndef SYMBOLS_PROBE_POINTS_H
#define SYMBOLS_PROBE_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../bpf/probe_maps.h"

/* The programs at probes, which know the value of a hit. */
enum probe_program {
	PROBE_CALL,       /* each hit has the value 1 */
	PROBE_ALLOC,      /* the value is the bytes that the call asks for; by enum alloc_kind */
	PROBE_FREE,       /* it frees memory, where that is followed, and is no hit */
	PROBE_RETURN,     /* at begin and return of a function: the value is the ns between */
	PROBE_TRACEPOINT, /* each hit of a raw tracepoint, whose name is the path, has the value 1
			   */
	PROBE_DESCRIBED,  /* as PROBE_CALL, with a filter of an argument that a note describes */
	PROBE_THROWS,     /* those of PROBE_ALLOC of kind ALLOC_THROWS, where memory is followed */
	PROBE_PROGRAMS
};

struct probe_point {
	char *path;      /* absolute */
	uint64_t offset; /* in the file */
	enum probe_program program;
	uint32_t kind;  /* of struct probe_function */
	uint64_t bytes; /* of the function's code, from there on */
	/* Offset in the file of the counter of those that watch this place; 0: it has none. */
	uint64_t semaphore;
	struct probe_filter filter; /* its operator is FILTER_NONE: each hit counts */
	/* Of a hook, its number and its hits' period; and by which its program knows the place; 0:
	 * it is of none, and known by where it is in the list. */
	uint64_t period;
	uint32_t hook, number;
};

struct probe_points {
	struct probe_point *at;
	size_t n, cap;
};

/* A function, and how many bytes behind its begin the probe is. */
struct probe_function {
	const char *name; /* as in the file's symbol tables, without a version */
	uint64_t plus;
	enum probe_program program;
	uint32_t kind; /* that the program receives */
};

/* Adds the places of those functions that the file has: in .symtab and .dynsym. The file is read by
 * a child process without rights. 0; -ENOENT: it has none of them; or -errno, each with a sentence
 * in *why, malloc'ed or NULL. */
int probe_points_find(struct probe_points *, const char *path, const struct probe_function *,
		      uint32_t n, char **why);
/* The same of a file that is open, whose points have no path, in the background. */
struct probe_search;
/* The functions are borrowed until it is freed. 0 or -errno. */
int probe_search_start(struct probe_search **ret, int fd, const struct probe_function *,
		       uint32_t n);
/* -EINPROGRESS: it goes on. Else it has ended: 0; -ENOENT: the file has none of them; -ENOEXEC: it
 * is no ELF file; -ETIMEDOUT: it did not answer; -EFAULT: reading it was a crash; or -errno; *why:
 * a sentence, malloc'ed or NULL; or NULL. Does not wait. */
int probe_search_poll(struct probe_search *, struct probe_points *, char **why);
/* Ends it, which may wait a moment; NULL is fine. */
void probe_search_free(struct probe_search *);
/* The file did not answer: its child is being killed. */
bool probe_search_is_stuck(const struct probe_search *);
/* The absolute path, malloc'ed. Links stay: what /proc/PID/root leads to has no name in this root.
 * NULL: no memory, or no current folder. */
char *probe_path(const char *path);
void probe_points_fini(struct probe_points *);
#endif
