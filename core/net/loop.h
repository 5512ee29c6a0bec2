/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread's event loop: descriptors, timers, signals, and calls from other threads.
 * Everything but loop_post() is for that one thread. Callbacks may add and remove anything, also
 * themselves. One that takes longer than 50 ms is counted: fusee_loop_slow_calls_total{what}.
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
/* The fd stays the caller's; remove the watch before closing it. */
int loop_watch(struct loop *, int fd, uint32_t events, loop_ready *, void *arg,
	       struct loop_watch **ret);
int loop_watch_events(struct loop_watch *, uint32_t events);
void loop_unwatch(struct loop_watch *); /* NULL is fine */
/* Again and again every period_ns, first after it; late ones are not made up for. */
int loop_every(struct loop *, uint64_t period_ns, loop_call *, void *arg, struct loop_timer **ret);
/* Once, at CLOCK_MONOTONIC at_ns; the timer removes itself before the call. */
int loop_at(struct loop *, uint64_t at_ns, loop_call *, void *arg, struct loop_timer **ret);
void loop_timer_free(struct loop_timer *); /* NULL is fine */
/* Blocks the signal (of all threads made later too) and calls back on it. It stays blocked after
 * loop_free(); a second call for one signal takes the place of the first. */
int loop_signal(struct loop *, int signal, loop_call *, void *arg);
/* [any thread] runs call(arg) on the loop's thread soon, in order. 0 or -ENOMEM. What was not run
 * when the loop is freed never will be. */
int loop_post(struct loop *, loop_call *, void *arg);
int loop_run(struct loop *);   /* until loop_stop(); 0 or -errno */
void loop_stop(struct loop *); /* from a callback */
#endif
