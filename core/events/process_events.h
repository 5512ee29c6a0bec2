/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the processes of the machine as they begin, exec and end: from the sideband records of a
 * dummy event on each CPU, or, where the kernel refuses these events, by reading /proc once a
 * second. For one thread.
 */
#ifndef EVENTS_PROCESS_EVENTS_H
#define EVENTS_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Called in the order of time. time: CLOCK_MONOTONIC ns; 0: read from /proc. */
struct process_events_handlers {
	void *arg;
	/* A process began; threads are not reported. parent 0: unknown. */
	void (*forked)(void *arg, pid_t pid, pid_t parent, uint64_t time);
	/* comm: the first 15 bytes of its name, valid until the handler returns; NULL: unknown. */
	void (*execed)(void *arg, pid_t pid, const char *comm, uint64_t time);
	/* Its last thread ended. Reported more than once if several end at the same time. */
	void (*exited)(void *arg, pid_t pid, uint64_t time);
	/* Records were lost, or a CPU was not followed for a while: read /proc again. */
	void (*lost)(void *arg);
};

struct process_events;

/* 0 or -errno. Processes that run already are not reported. */
int process_events_open(struct process_events **ret, const struct process_events_handlers *);
void process_events_close(struct process_events *); /* NULL is fine */
/* /proc is read, because the kernel refuses the events. */
bool process_events_polls(const struct process_events *);
/* One sentence: which way is used, and why. Borrowed. */
const char *process_events_how(const struct process_events *);
/* Bytes of the ring of each CPU on a machine with so many. */
uint64_t process_events_ring_size(uint32_t cpus);
/* An epoll descriptor, readable after each event. A caller may wait a while before it drains, to
 * be woken less often. */
int process_events_fd(const struct process_events *);
/* Calls the handlers; to be called several times a second. A record of the last 2 ms waits for
 * those of other CPUs, unless all are to be reported `now`: then events of unrelated processes may
 * be reported in another order. It ends after 20 ms, so that others have their turn. Returns the
 * time (CLOCK_MONOTONIC ns) until which everything was reported; while it is behind by more than
 * 100 ms, a later time: samples of known processes do not wait for a storm of forks. */
uint64_t process_events_drain(struct process_events *, bool now);
/* Whether there are events that no drain has reported. The descriptor, which stays ready after a
 * drain until it was polled, is ready again after the next event only. */
bool process_events_are_waiting(struct process_events *);
/* Whether records remain that were due at the last drain. */
bool process_events_is_behind(const struct process_events *);
#endif
