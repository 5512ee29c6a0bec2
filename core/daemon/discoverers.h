/* SPDX-License-Identifier: Apache-2.0 */
/* The discovery instances at work, on the control thread: their timers and descriptors in the loop,
 * what they say in the targets. */
#ifndef DAEMON_DISCOVERERS_H
#define DAEMON_DISCOVERERS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/loop.h"
#include "plugin/instance.h"
#include "process/target.h"

struct discoverers;
struct discoverer;

/* For the host table that instances of discovery are made with. */
extern const struct fusee_discovery_host discoverers_host;

int discoverers_new(struct discoverers **ret, struct loop *, struct targets *);
void discoverers_free(struct discoverers *); /* all instances too; NULL is fine */
/* Takes the instance over (its owner is the discoverer from now on), calls start(), and tells it
 * each running process if it wants them. 0 or -errno with *text: then the instance is the caller's
 * again. */
int discoverers_add(struct discoverers *, struct fusee_instance *, struct discoverer **ret,
		    char **text);
/* Stops it: its targets go. */
void discoverers_remove(struct discoverers *, struct discoverer *);
/* A process began, execed or ended: told to those who want it. */
void discoverers_process(struct discoverers *, const struct fusee_process_event *);
/* Once a second: an event that an instance had no memory for is told again, as EXEC, or EXIT where
 * the process is gone. */
void discoverers_catch_up(struct discoverers *);
/* Every one has committed once. */
bool discoverers_synced(const struct discoverers *);
const struct fusee_instance *discoverer_instance(const struct discoverer *);
bool discoverer_synced(const struct discoverer *);
uint32_t discoverer_targets(const struct discoverer *); /* that it has put */
/* What it last failed with; "" nothing. */
const char *discoverer_error(const struct discoverer *);
#endif
