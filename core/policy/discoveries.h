/* SPDX-License-Identifier: Apache-2.0 */
/* The discovery instances of the agent, and the process events that they receive. For the control
 * thread. */
#ifndef POLICY_DISCOVERIES_H
#define POLICY_DISCOVERIES_H

#include "policy/discovery.h"

struct discoveries;
struct opener;

/* The loop and the targets are borrowed. 0 or -ENOMEM. */
int discoveries_new(struct discoveries **ret, struct loop *, struct targets *);
/* The opener reads the memory of processes for instances; borrowed. NULL: this process does. */
void discoveries_set_opener(struct discoveries *, struct opener *);
/* take(arg, ..) [any thread] is profile() of the instances' host. */
void discoveries_set_profiles(struct discoveries *,
			      int (*take)(void *arg, const struct fusee_pprof *, char *why,
					  uint32_t cap),
			      void *arg);
/* Whether discoveries_find_labels() will be called for the processes whose labels are needed. If
 * not, as at first, instances find them all at once. */
void discoveries_set_early(struct discoveries *, bool early);
/* changed(arg) is called after an instance has changed targets, but not after a process event. */
void discoveries_on_change(struct discoveries *, void (*changed)(void *arg), void *arg);
void discoveries_free(struct discoveries *); /* with all instances; NULL is fine */
/* discovery_new(); an instance that subscribed to process events then receives one RUNNING for
 * each process of the system, and SYNC. *ret is valid until discoveries_remove(). */
int discoveries_add(struct discoveries *, struct fusee_instance *, struct discovery **ret,
		    char **text);
/* Frees the instance; its targets are removed. */
void discoveries_remove(struct discoveries *, struct discovery *);
/* Passes an event (fork, exec, exit) to each instance that subscribed to them. A fork is passed by
 * discoveries_settle(), or before an event of its parent; it is not if the child's exec or exit
 * comes first. The exec of a process that has ended meanwhile is passed as its exit. */
void discoveries_process(struct discoveries *, const struct fusee_process_event *);
/* Has the labels found that the process's targets lack: targets_lack_labels(). */
void discoveries_find_labels(struct discoveries *, pid_t);
/* Passes the forks that wait; after each drain of process events. */
void discoveries_settle(struct discoveries *);
/* Once a second: repeats the events that an instance answered with -ENOMEM, as EXEC, or as EXIT
 * where the process has ended. */
void discoveries_retry(struct discoveries *);
void discoveries_metrics(const struct discoveries *); /* makes their metrics exact */
/* Each instance has committed at least once. */
bool discoveries_synced(const struct discoveries *);
#endif
