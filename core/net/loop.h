/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop of the control thread: descriptors, timers, signals, and calls posted by other
 * threads. All functions but loop_post() are for the loop's thread. Callbacks may add and remove
 * watches and timers, including their own. A callback that takes more than 50 ms is counted:
 * fusee_loop_slow_calls_total{what}.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdint.h>

struct loop;
struct loop_watch;
struct loop_timer;

typedef void loop_ready(void *arg, int fd, uint32_t events);
typedef void loop_call(void *arg);

int loop_new(struct loop **ret); /* 0 or -errno */
void loop_free(struct loop *);   /* with all watches and timers; NULL is fine */
/* Calls back on events (EPOLLIN, ..) of a descriptor, which stays the caller's and must not be
 * closed before loop_unwatch(). 0 or -errno. */
int loop_watch(struct loop *, int fd, uint32_t events, loop_ready *, void *arg,
	       struct loop_watch **ret);
int loop_watch_events(struct loop_watch *, uint32_t events);
void loop_unwatch(struct loop_watch *); /* NULL is fine */
/* Calls back every period_ns, first after one period; periods that have passed are skipped. 0 or
 * -ENOMEM. */
int loop_every(struct loop *, uint64_t period_ns, loop_call *, void *arg, struct loop_timer **ret);
/* Likewise, first at first_ns (CLOCK_MONOTONIC). */
int loop_every_from(struct loop *, uint64_t first_ns, uint64_t period_ns, loop_call *, void *arg,
		    struct loop_timer **ret);
/* Calls back once at at_ns (CLOCK_MONOTONIC); the timer is freed before the call. 0 or -ENOMEM. */
int loop_at(struct loop *, uint64_t at_ns, loop_call *, void *arg, struct loop_timer **ret);
void loop_timer_free(struct loop_timer *); /* NULL is fine */
/* Blocks a signal in this thread, and in threads that it creates later, and calls back on it. It
 * stays blocked after loop_free(). A second call for a signal replaces its callback. 0 or -errno;
 * -ENOSPC: 16 signals have callbacks. */
int loop_signal(struct loop *, int signal, loop_call *, void *arg);
/* [any thread] Runs call(arg) soon on the loop's thread, in the order of the calls. 0 or -ENOMEM.
 * Calls that have not run when the loop is freed are dropped. */
int loop_post(struct loop *, loop_call *, void *arg);
int loop_run(struct loop *);   /* until loop_stop(); 0 or -errno */
void loop_stop(struct loop *); /* from a callback */
#endif
