/* SPDX-License-Identifier: Apache-2.0 */
/* One recording: what was asked for, what runs, what came out. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "cli/launch.h"
#include "profile/builder.h"
#include "sampling/build_profile.h"
#include "sampling/profiler.h"

#define SESSION_MAX_PIDS 4096u
#define SESSION_MAX_OUTPUTS 16

struct session;

struct session_options {
	pid_t pids[SESSION_MAX_PIDS];
	uint32_t npids;
	bool all;
	char *const *command; /* NULL: none */
	double hz;
	uint64_t duration_ns; /* 0: until the targets end or a signal comes */
	uint32_t stack_bytes;
	bool kernel, threads, inlines, cache, quiet;
	enum sampler_choice sampler;
	const char *outputs[SESSION_MAX_OUTPUTS];
	uint32_t noutputs;
	const char *again; /* the command line, to be pasted again */
	const char *stats; /* file for the account as JSON, NULL: none */
	/* Instead of the progress line, several times a second, and when keys (a descriptor, -1:
	 * none) can be read. NULL: the progress line. */
	void (*tick)(struct session *, bool key);
	int keys;
	void *tick_arg;
};

/* Where unwind tables are kept: $XDG_CACHE_HOME/fusee, ~/.cache/fusee; NULL: nowhere. The caller
 * frees it. */
char *session_cache_dir(void);

struct session {
	struct session_options o;
	struct launch child;
	bool child_runs;
	int child_status;          /* of wait(2), once it has ended */
	struct rusage child_usage; /* likewise */
	struct profiler profiler;
	int epoll, signals, ticks;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC, of sampling */
	uint64_t start_wall_ns;    /* CLOCK_REALTIME */
	uint64_t system_before_ns; /* kernel CPU time of the targets before sampling */
	uint32_t living;           /* targets of -p that have not ended */
	uint32_t interrupts;
	uint64_t progress_shown; /* half seconds, of the last progress line */
	bool stop;
};

/* What became of all samples that were due. */
struct session_account {
	struct loss_account losses;
	struct perf_stream_counts counts;
	struct pipeline_stats stats;
	uint64_t period_ns;
};

/* By its name. 0 or -EINVAL. */
int session_sampler(const char *name, enum sampler_choice *ret);
/* Opens everything; on failure one error was logged. 0 or an exit code of sysexits.h. */
int session_open(struct session *);
/* Samples until the end. 0 or an exit code. */
int session_run(struct session *);
void session_account(struct session *, struct session_account *);
void session_close(struct session *);

/* The line that is rewritten while sampling, on a terminal only. */
void progress_update(struct session *);
void progress_clear(void);

/* Prints what came out: hottest functions, losses, poor names, files written. */
void summary_print(struct session *, const struct fusee_profile *, double naming_s);
/* Writes the account as JSON. 0 or -errno. */
int summary_stats(struct session *, const char *path);
/* Adds what was lost and truncated to the profile. */
void summary_losses(struct session *, struct builder *);
#endif
