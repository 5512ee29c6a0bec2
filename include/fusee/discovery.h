/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/discovery.h - discovery plugins: targets and their labels. <fusee/plugin.h> includes it.
 */
#ifndef FUSEE_DISCOVERY_H
#define FUSEE_DISCOVERY_H

#include <stdint.h>

#include <fusee/profile.h>

struct fusee_instance;

enum fusee_match {
	FUSEE_MATCH_PID = 1,    /* one process */
	FUSEE_MATCH_CGROUP = 2, /* the processes of a control group and of the groups below it */
	FUSEE_MATCH_LABEL = 3,  /* every target that has match_label: adds labels to it */
};

/* A target. Where several targets set the same label of a process, FUSEE_MATCH_PID wins over
 * FUSEE_MATCH_CGROUP, a control group wins over its parent, and FUSEE_MATCH_LABEL comes last. */
struct fusee_target {
	uint32_t size, match;
	struct fusee_str key; /* names the target within this instance; stays the same */
	uint32_t pid, pad;
	/* Field 22 of /proc/PID/stat, or what process_text("id") begins with; the target is the
	 * process that has the pid when the target is first looked up. 0: any process that has the
	 * pid. */
	uint64_t pid_start_ticks;
	struct fusee_str cgroup;        /* path from the root of its hierarchy: "/a/b" */
	struct fusee_label match_label; /* a text label, such as container_id */
	struct fusee_table labels;      /* struct fusee_label, text labels only */
	/* 1.0: struct fusee_str: names of labels that it may have besides, and that cost something
	 * to find. FUSEE_PROCESS_LABELS asks for them. FUSEE_MATCH_PID only. */
	struct fusee_table later;
};

enum fusee_process_event_kind {
	FUSEE_PROCESS_RUNNING = 1, /* the process existed when the agent started */
	/* A new process that runs its parent's program; not if EXEC or EXIT follow at once. */
	FUSEE_PROCESS_FORK = 2,
	FUSEE_PROCESS_EXEC = 3, /* the process runs another program */
	/* The process has ended. Its pid may belong to a new process already, whose FORK or EXEC
	 * was reported before. */
	FUSEE_PROCESS_EXIT = 4,
	FUSEE_PROCESS_SYNC = 5, /* every RUNNING process has been reported; pid is 0 */
	/* 1.0: the labels that were put as `later` are needed: put the target again, with them.
	 * Never sent for a target without `later`. */
	FUSEE_PROCESS_LABELS = 6,
};

struct fusee_process_event {
	uint32_t size, kind, pid, parent; /* kind: as above; parent: of FORK */
};

/* 0.6: a profile that a server has made of itself. */
struct fusee_pprof {
	uint32_t size, pad;
	struct fusee_str bytes;     /* pprof's format, gzip or not; nothing in it is trusted */
	struct fusee_str kind;      /* `kind` of the profile: "cpu", "alloc", "mutex" .. */
	struct fusee_table labels;  /* struct fusee_label, text labels: of the server, 32 at most */
	uint64_t max_bytes;         /* of the bytes without gzip, at most; 512 MiB at most */
	uint64_t start_ns, took_ns; /* of the request, start: CLOCK_REALTIME */
};

/* Host calls of discovery plugins: in their callbacks only, but for wake() and profile(). */
struct fusee_discovery_host {
	uint32_t size, pad;
	/* From begin() to commit() the plugin puts all its targets; commit() removes the targets
	 * that were not put. Outside of them put() and del() take effect at once. The first
	 * commit() reports that the instance is in sync. */
	int (*begin)(struct fusee_instance *);
	/* Adds or replaces. -EDQUOT: label texts of the process's user, or of all, take too much
	 * memory; the target has no labels. 1.0: 1, only of a target with `later`: these labels are
	 * needed at once, put it again. */
	int (*put)(struct fusee_instance *, const struct fusee_target *);
	int (*del)(struct fusee_instance *, struct fusee_str key); /* -ENOENT: no such target */
	int (*commit)(struct fusee_instance *);
	/* Calls ops->ready(fd, events) when epoll reports events for fd; events 0: stops. The
	 * descriptor stays the plugin's. */
	int (*watch_fd)(struct fusee_instance *, int fd, uint32_t events);
	/* Calls ops->tick() every period_ns nanoseconds; 0: stops. */
	int (*timer)(struct fusee_instance *, uint64_t period_ns);
	/* [any thread] Calls ops->ready(-1, 0) soon, on the control thread. */
	int (*wake)(struct fusee_instance *);
	/* Copies up to len bytes at the offset of /proc/PID/`name`: "cmdline", "environ" or "stat";
	 * or, at offset 0 only, "cgroup", the path that "exe" is a link to, or "otel_context": the
	 * message that an SDK of OpenTelemetry published (ProcessContext of opentelemetry-proto),
	 * -ENOENT: none, -E2BIG: it is longer. These wait for the process, for 50 ms at most. 0.6:
	 * "id", with len 32 at least: a number for pid_start_ticks, a blank, the real user's
	 * number; it never waits, and needs Linux 6.13. Works also if the process's first thread
	 * has ended and others go on: /proc/PID then has none of these but "stat". Returns the
	 * number of bytes, or -errno; -ETIMEDOUT, -EAGAIN: may succeed later. Fewer than 4096
	 * bytes, if len is not smaller, end at the end of the text. */
	int64_t (*process_text)(struct fusee_instance *, uint32_t pid, const char *name,
				uint64_t offset, void *buf, uint64_t len);
	/* [any thread, may block] 0.6: delivers a profile to all sinks but those with `default =
	 * false`, relabeled for each. 0; -EINVAL: it is not a profile; -EFBIG; -EAGAIN: too much
	 * waits; -EPERM: nothing takes profiles, as in `fusee check`. why: the reason, terminated.
	 * NULL in place of a profile only asks for -EPERM. */
	int (*profile)(struct fusee_instance *, const struct fusee_pprof *, char *, uint32_t cap);
};

enum fusee_discovery_flags {
	FUSEE_DISCOVERY_PROCESSES = 1, /* ops->process() is called for the machine's processes */
	/* 0.6: it finds no targets but hands over profiles: a script that names no other discovery
	 * has the default discoveries, too. */
	FUSEE_DISCOVERY_PROFILES = 2,
};

/* All callbacks: [control thread]. They must not block; 50 ms is the limit. A callback that fails
 * is logged once and called again at its next occasion. */
struct fusee_discovery_ops {
	uint32_t size, flags;    /* enum fusee_discovery_flags */
	int (*start)(void *ctx); /* once, after init() */
	int (*ready)(void *ctx, int fd, uint32_t events);
	int (*tick)(void *ctx);
	/* -ENOMEM: the core repeats the event one second later as EXEC, or as EXIT if the process
	 * has ended by then. */
	int (*process)(void *ctx, const struct fusee_process_event *);
};

#endif
