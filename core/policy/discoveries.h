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
void discoveries_free(struct discoveries *); /* with all instances; NULL is fine */
/* discovery_new(); an instance that subscribed to process events then receives one RUNNING for
 * each process of the system, and SYNC. *ret is valid until discoveries_remove(). */
int discoveries_add(struct discoveries *, struct fusee_instance *, struct discovery **ret,
		    char **text);
/* Frees the instance; its targets are removed. */
void discoveries_remove(struct discoveries *, struct discovery *);
/* Passes an event (begin, exec, exit) to each instance that subscribed to them. */
void discoveries_process(struct discoveries *, const struct fusee_process_event *);
/* Once a second: repeats the events that an instance answered with -ENOMEM, as EXEC, or as EXIT
 * where the process has ended. */
void discoveries_retry(struct discoveries *);
/* Each instance has committed at least once. */
bool discoveries_synced(const struct discoveries *);
#endif
