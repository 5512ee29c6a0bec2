/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording of `record` or `top`: a selection of processes or a command, the profiler that
 * samples them, and the event loop that drives it until they end, a time is over or a signal comes.
 */
#ifndef RECORD_SESSION_H
#define RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols/probe_points.h"
#include "record/internal/command.h"
#include "record/internal/process_labels.h"
#include "selection/selection.h"
#include "config/unwind_flags.h"
#include "profile/builder.h"
#include "profiler/allocators.h"
#include "profiler/build_profile.h"
#include "profiler/in_use.h"
#include "profiler/profiler.h"

#define DEFAULT_HZ 99.0
#define SESSION_ALLOC "alloc" /* names of events */
#define SESSION_IN_USE "inuse"

struct probe_kind; /* probes/parse.h */
struct session;

/* Samplers of plugins. Their names and periods are set before session_open(). */
struct session_choosers {
	struct chooser_options at[PLUGIN_MAX_SAMPLERS];
	double hz[PLUGIN_MAX_SAMPLERS]; /* of each, as given with its name; 0: by -F and -c */
	uint32_t n;
	bool cpu; /* CPU time was named, too */
};

struct session_options {
	struct selection selection;
	struct unwind_flags unwind; /* --unwind */
	/* stack_bytes, kernel, threads, inlines, sampler and command_line are the caller's;
	 * session_open() fills in the rest. */
	struct profiler_options profiler;
	double hz;
	bool wall;                        /* time off the CPU beside CPU time */
	struct session_choosers choosers; /* samplers of plugins, that of `wall` is the first */
	struct event_kind event;          /* what is sampled; no name: CPU time at that rate */
	struct probe_points probes;       /* of `event` */
	struct buf event_words;           /* the options -e, as in a command line */
	uint32_t event_period;            /* events between two samples; 0: the kind's default */
	uint64_t duration_ns;             /* 0: no limit */
	bool cache;                       /* unwind tables are read from and written to disk */
	bool native;                      /* reports show an interpreter's own functions too */
	bool server_names;                /* as in struct build_options */
	const char *servers;              /* of debuginfod; NULL: none */
	uint64_t servers_wait_ns;         /* for them, at the end */
	/* Called 20 times a second; and, with key, when the descriptor keys (-1: none) can be read.
	 */
	void (*tick)(struct session *, bool key);
	int keys;
	void *arg; /* for the caller */
};

struct session {
	struct session_options o;
	struct command command;
	struct profiler profiler;
	struct allocators *allocators; /* NULL: they are not probed */
	struct in_use in_use;          /* at the end, or of the window that was closed last */
	struct process_labels *labels; /* NULL: samples have no labels of targets */
	int epoll, signals, timer;     /* descriptors; -1: not open */
	uint32_t interrupts;           /* signals that end a recording, so far */
	uint32_t running;              /* processes of -p that have not ended */
	uint64_t start_ns, end_ns;     /* of sampling, CLOCK_MONOTONIC */
	uint64_t start_wall_ns;        /* CLOCK_REALTIME */
	uint64_t system_before_ns;     /* kernel CPU time of the processes before sampling */
	bool stop;
	bool traced;  /* the command did not stop at its begin in time: it is let go when it does */
	bool hurried; /* a signal ended a wait behind the recording: no program is called */
};

/* Where unwind tables are kept: $XDG_CACHE_HOME/fusee, ~/.cache/fusee, or /var/cache/fusee for
 * root. NULL: nowhere. The caller frees it. */
char *session_cache_dir(void);
/* The sampler of this name. 0 or -EINVAL. */
int session_sampler(const char *name, enum sampler_choice *ret);

/* Is CPU time sampled beside what samplers of plugins choose? */
bool session_is_beside(const struct session_options *);
/* Are allocations sampled? Their values are bytes. */
bool session_is_alloc(const struct session_options *);
/* The kind of the probes that users have named; NULL: none. */
const struct probe_kind *session_probes(const struct session_options *);
/* Are calls sampled up to their return? Their values are ns. */
bool session_is_timed(const struct session_options *);
/* Defaults: 99 Hz, kernel stacks, inlined functions, the cache, no tick. */
void session_init(struct session *);
/* Opens everything and prepares the processes that run already. 0, or an exit code of sysexits.h
 * after one error was logged; then session_close() is still to be called. */
int session_open(struct session *);
/* Samples until the end; all samples are in the collectors then. 0 or an exit code. */
int session_run(struct session *);
/* Closes the window, and begins the next; what is in use is in both. As profiler_close_window().
 */
int session_close_window(struct session *, struct profiler_window *);
/* In ns of CPU time, or in events. */
uint64_t session_period(const struct session *);
/* How profiles of this session are built, for build_profile(). Borrows from the session. */
struct build_options session_build_options(struct session *);
/* Waits for the command. */
void session_close(struct session *);
#endif
