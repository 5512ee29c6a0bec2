/* SPDX-License-Identifier: Apache-2.0 */
/* The discovery instances at work, on the control thread: their timers and descriptors in the loop,
 * what they say in the targets. */
#ifndef POLICY_DISCOVERY_H
#define POLICY_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"
#include "plugin/instance.h"
#include "process/target.h"

struct discovery;
struct discovery_source;

/* For the host table that instances of discovery are made with. */
extern const struct fusee_discovery_host discovery_host;

int discovery_new(struct discovery **ret, struct loop *, struct targets *);
void discovery_free(struct discovery *); /* all instances too; NULL is fine */
/* Takes the instance over (its owner is the discoverer from now on), calls start(), and tells it
 * each running process if it wants them. 0 or -errno with *text: then the instance is the caller's
 * again. */
int discovery_add(struct discovery *, struct fusee_instance *, struct discovery_source **ret,
		  char **text);
/* Stops it: its targets go. */
void discovery_remove(struct discovery *, struct discovery_source *);
/* A process began, execed or ended: told to those who want it. */
void discovery_process(struct discovery *, const struct fusee_process_event *);
/* Once a second: an event that an instance had no memory for is told again, as EXEC, or EXIT where
 * the process is gone. */
void discovery_catch_up(struct discovery *);
/* Every one has committed once. */
bool discovery_synced(const struct discovery *);
const struct fusee_instance *discoverer_instance(const struct discovery_source *);
bool discoverer_synced(const struct discovery_source *);
uint32_t discoverer_targets(const struct discovery_source *); /* that it has put */
/* What it last failed with; "" nothing. */
const char *discoverer_error(const struct discovery_source *);
#endif
