/* SPDX-License-Identifier: Apache-2.0 */
/* struct hooks and its parts, for the files of core/hooks only. */
#ifndef HOOKS_STATE_H
#define HOOKS_STATE_H

#include "base/background.h"
#include "base/hashmap.h"
#include "bpf/probes.h"
#include "files/files.h"
#include "hooks/hooks.h"

#define SEARCHES 4u /* at once */
#define TRACEPOINTS MOST_TRACEPOINTS

/* A file that has the path of a hook. */
struct hook_file {
	struct hook_file *next; /* of the same file */
	struct hook *hook;
	enum { FILE_WAITS, FILE_SEARCHED, FILE_KNOWN } state;
	uint64_t retry_ns, pause_ns; /* not before; CLOCK_MONOTONIC */
	uint64_t added_ns;           /* of the file */
	struct probe_points points;  /* numbered; none: the file has no such place */
};

/* By id of a file: which hooks it has. */
struct hooked_file {
	uint64_t added_ns; /* of the file: its id may be another's later */
	uint32_t plan;     /* generation of hooks by which it was looked at */
	struct hook_file *first;
};

struct hook_search {
	struct text_search *search; /* NULL: none runs */
	struct file *file;          /* held */
	struct hook_file *of;       /* NULL: it is not needed any more */
	char *path;
};

/* A hook in a process at a file. */
struct hooked {
	struct hooked *next;
	uint64_t key;
	struct hook *hook;
	uint64_t added_ns; /* of the file */
	uint64_t seen_ns;  /* CLOCK_MONOTONIC, as retry_ns */
	uint64_t retry_ns;
	bool refused; /* counted as such */
	struct probe_links links;
};

/* Of one at a tracepoint. */
struct hooked_tracepoint {
	struct hook *hook; /* NULL: free, once nothing is being removed */
	struct probe_links links;
	uint64_t retry_ns;
};

struct hooks {
	struct profiler *profiler;
	struct background *background; /* removes probes */
	struct hook *at[MOST_HOOKS + 1];
	uint8_t last; /* number that was given */
	uint64_t hold_ns;
	uint32_t plan; /* generation */
	bool stopped;
	struct hooked_file *files;
	size_t nfiles, files_cap;
	struct hook_search searches[SEARCHES];
	uint8_t places[HOOK_PLACES + 1]; /* by number: enum place_state */
	struct hashmap hooked;           /* by key */
	struct hooked *first;
	struct pollfd *polled; /* of those with probes */
	uint32_t n, polled_cap;
	struct hooked_tracepoint tracepoints[TRACEPOINTS]; /* by number less 1 */
	uint64_t now;
};

enum place_state { PLACE_FREE, PLACE_USED, PLACE_RETIRED };

/* ---- report.c ---- */

/* Something of this hook failed: the sentence is the hook's, malloc'ed or NULL. */
void hooks_failed(struct hook *, char *why);

static inline bool hook_is_of_file(const struct hook *h)
{
	return h->parsed.kind->program != PROBE_TRACEPOINT;
}

/* ---- files.c ---- */

/* The hooks of this file; NULL: none, or no memory. */
struct hook_file *hooks_file(struct hooks *, struct file *);
/* Takes the results of searches that have ended. */
void hooks_poll_searches(struct hooks *);
/* What is of this hook is not needed any more; NULL: of any. */
void hooks_forget_files(struct hooks *, const struct hook *);

/* ---- links.c ---- */

/* Probes of all processes, and tracepoints. */
void hooks_attach(struct hooks *);
/* Removes those of this hook, of processes that have ended, or do not map the file. */
void hooks_detach(struct hooks *, const struct hook *);
void hooks_drop_ended(struct hooks *);
/* Is something being removed? Then numbers of its places may still have hits. */
bool hooks_are_leaving(void);
#endif
