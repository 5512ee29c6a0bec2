/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of the whole machine as they begin, exec and end: from perf's records of a dummy event
 * on each CPU, or, where the kernel refuses that, by looking over /proc once a second. For one
 * thread.
 */
#ifndef EVENTS_PROCESS_EVENTS_H
#define EVENTS_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* time: CLOCK_MONOTONIC ns; 0 where /proc is looked over. In order of time. */
struct process_events_handlers {
	void *arg;
	void (*forked)(void *arg, pid_t pid, pid_t parent,
		       uint64_t time); /* a process, no thread */
	/* comm: its name, 15 bytes of it; NULL: not told. It lives until the handler returns. */
	void (*execed)(void *arg, pid_t pid, const char *comm, uint64_t time);
	/* Its first thread has ended: others may go on for a while. */
	void (*exited)(void *arg, pid_t pid, uint64_t time);
	void (*lost)(void *arg); /* records, or CPUs came late: look at /proc again */
};

struct process_events;

/* 0 or -errno. Nothing is told of what runs already. */
int process_events_open(struct process_events **ret, const struct process_events_handlers *);
void process_events_close(struct process_events *);       /* NULL is fine */
bool process_events_polls(const struct process_events *); /* /proc is looked over */
/* One sentence that says how it works, and why not better. Lives as long as it. */
const char *process_events_how(const struct process_events *);
/* An epoll fd, readable when something has happened: each time, so whoever waits for it may want to
 * leave it for a while afterwards. */
int process_events_fd(const struct process_events *);
/* Tells what has happened. Several times a second. Until when (CLOCK_MONOTONIC ns) all is told. */
uint64_t process_events_drain(struct process_events *);
#endif
