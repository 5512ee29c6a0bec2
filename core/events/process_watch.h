/* SPDX-License-Identifier: Apache-2.0 */
/* When an event loop drains process events: soon after the first, seldom while many come. */
#ifndef EVENTS_PROCESS_WATCH_H
#define EVENTS_PROCESS_WATCH_H

struct loop;
struct process_events;
struct process_watch;

/* Calls due(arg), which is to drain the events, 3 ms after the first event that follows a quiet
 * time, and each 100 ms while events come. All are borrowed. For the loop's thread. 0 or -errno. */
int process_watch_open(struct process_watch **ret, struct loop *, struct process_events *,
		       void (*due)(void *arg), void *arg);
void process_watch_close(struct process_watch *); /* before the loop; NULL is fine */
#endif
