/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's view of each process: publishes its mappings to the BPF sampler, confirms and
 * withdraws them. kernel_view.c draws the states. Without a BPF sampler all calls do nothing. Times
 * are CLOCK_MONOTONIC nanoseconds. For one thread.
 */
#ifndef PIPELINE_KERNEL_VIEW_H
#define PIPELINE_KERNEL_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/publish.h"
#include "process/process.h"
#include "unwind/claims.h"
#include "files/files.h"
#include "unwind/walk.h"

enum kernel_view_state {
	VIEW_ABSENT,
	VIEW_NO_ROOM,
	VIEW_PUBLISHED,
	VIEW_CHANGED,
};

/* The view of one process. The struct that process_owner() returns begins with it; zeros:
 * absent. */
#define KERNEL_VIEW_COVERED 4u

struct kernel_view {
	struct published published;
	enum kernel_view_state state;
	bool dirty;               /* the published mappings are out of date */
	uint32_t ready;           /* mappings whose file was ready when it was published */
	uint64_t no_room;         /* VIEW_NO_ROOM: when publishing failed */
	uint64_t sampled;         /* as_of when its last sample was read; 0: it had none */
	uint64_t reread;          /* when /proc was last to be read because of VIEW_CHANGED */
	uint64_t read;            /* its mappings are at least as new as this */
	uint64_t written;         /* when publishing last ended, CLOCK_MONOTONIC; 0: never */
	uint64_t covered;         /* when code was last covered by other code; 0: never */
	uint32_t covered_version; /* the version published then; stacks of older versions and .. */
	/* .. of this version may be wrong if they have code of these files */
	uint32_t covered_files[KERNEL_VIEW_COVERED];
	uint32_t ncovered; /* above KERNEL_VIEW_COVERED: too many files, so any code */
	uint32_t nanonymous, anonymous_cap;
	struct anonymous_code *anonymous; /* that user space has stepped; owned */
};

/* The views of all processes. The owner sets the first group of members, which is borrowed. */
struct kernel_views {
	struct bpf_sampler *bpf; /* NULL: there is no BPF sampler */
	struct process_table *processes;
	struct claims *claims;
	const struct made_code *made;
	struct files *files;
	bool (*selected)(void *arg, pid_t pid); /* whether it is sampled; NULL: all are */
	/* Reads its mappings from /proc. false: it is read later, and kernel_view_was_read() is
	 * called. */
	bool (*reread)(void *arg, struct process *proc);
	void *arg;

	bool dirty;       /* a view may be dirty */
	bool no_room;     /* publishing a process found no room */
	uint64_t as_of;   /* records until then have been read */
	uint64_t tidied;  /* when ended processes were last searched because there was no room */
	uint32_t answers; /* of the worker, when files were last looked at */
};

static inline struct kernel_view *kernel_view_of(struct process *p)
{
	return process_owner(p);
}

/* Publishes changed views. To be called after all records until as_of were read; 0: no records were
 * read yet. */
void kernel_views_update(struct kernel_views *, uint64_t as_of);
/* The same as of now, and waits for the language programs that processes await. Only while nothing
 * is sampled. */
void kernel_views_update_all(struct kernel_views *);
/* The same, until the time `until` (CLOCK_MONOTONIC ns). false: processes still await programs. */
bool kernel_views_update_until(struct kernel_views *, uint64_t until);
/* Whether kernel_views_update() will publish processes. */
bool kernel_views_are_unpublished(const struct kernel_views *);
/* Whether it will have work now or soon. */
bool kernel_views_are_pending(const struct kernel_views *);

/* The published mappings of the process are out of date. */
void kernel_view_mark_dirty(struct kernel_views *, struct process *);
/* A sample of the process was read. */
void kernel_view_sampled(struct kernel_views *, struct process *);
/* This new mapping replaces code of the process, of this file; 0: of several files or of none.
 * Before process_map(). */
void kernel_view_covered(struct kernel_views *, struct process *, const struct process_mapping *to,
			 uint32_t file);
/* A walk in user space stepped code in this memory without a file. */
void kernel_view_stepped(struct kernel_views *, struct process *, const struct process_mapping *);
/* The mappings of the process are those of this time or later. */
void kernel_view_was_read(struct process *, uint64_t time);
/* The process exec'ed, exited, or its pid is used again. */
void kernel_view_withdraw(struct kernel_views *, struct process *);
/* Whether a stack of this time was unwound over mappings that had been replaced by then. process
 * and version are those of its record. */
bool kernel_view_is_outdated(struct process *, uint64_t time, uint64_t process, uint32_t version,
			     const struct walk *);

/* For struct process_owner. */
void kernel_view_forked(const struct process *parent, struct process *child);
void kernel_view_freed(struct kernel_views *, struct process *);
#endif
