/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods of this node as targets: each container is matched by its ID, which the cgroup discovery
 * finds in the paths of control groups; a pod itself is matched by its UID, which is in these paths
 * too, before the API server knows the IDs of its containers. On the control thread.
 */
#ifndef KUBERNETES_PODS_H
#define KUBERNETES_PODS_H

#include "pod.h"

#define PODS_MAX 10000u
#define PODS_CHOSEN 24u /* chosen labels that a target has room for */
/* Deleted pods keep their labels for this time, for samples that arrive late. */
#define PODS_KEEP (30 * FUSEE_SECOND)

struct pods;

/* All is borrowed until pods_close(). NULL: no memory. */
struct pods *pods_open(const struct fusee_self *, const struct chosen *, uint32_t nchosen);
void pods_close(struct pods *); /* NULL is valid */

/* Adds or updates a pod. 0, -ENOMEM or what host->discovery->put() returned. */
int pods_put(struct pods *, const struct pod *, uint64_t now_ns);
void pods_delete(struct pods *, const char *uid, uint64_t now_ns);
/* The server lists all pods: pods_put() for each, then pods_end_list(), which deletes pods of
 * earlier lists that this list lacks. */
void pods_begin_list(struct pods *);
void pods_end_list(struct pods *, uint64_t now_ns);
/* Removes the targets of pods and containers that were deleted PODS_KEEP ago. Returns when to call
 * it next (CLOCK_MONOTONIC ns); UINT64_MAX: never. */
uint64_t pods_sweep(struct pods *, uint64_t now_ns);
uint32_t pods_count(const struct pods *);
#endif
