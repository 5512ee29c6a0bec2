/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One discovery instance: its callbacks, and the calls that it makes to the host. Its descriptors
 * and its timer are in the loop, its targets in the targets. A callback that fails is counted and
 * logged; an instance that keeps failing is called less often.
 *
 * Threads: the control thread, but for the host's wake(), which any thread of the plugin may call
 * until the instance's fini() has returned.
 */
#ifndef POLICY_DISCOVERY_H
#define POLICY_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"
#include "plugin/instance.h"
#include "target/target.h"

struct discovery;

/* What all instances share; borrowed by each until discovery_free(). */
struct discovery_context {
	struct loop *loop;
	struct targets *targets;
	struct opener *opener; /* reads processes' memory; NULL: this process does */
	/* [any thread] profile() of the host. NULL: nothing takes profiles. */
	int (*profile)(void *arg, const struct fusee_pprof *, char *why, uint32_t cap);
	void *profile_arg;
	/* Targets have changed, not by a process event. May be NULL. */
	void (*changed)(void *arg);
	void *changed_arg;
	bool early; /* labels that a target names as `later` need not be found at once */
	/* The instance whose callback runs, or NULL: host calls of others fail with -EPERM. */
	struct discovery *running;
};

/* The calls to the host, for the host table that discovery instances are made with. */
extern const struct fusee_discovery_host discovery_host;

/* Takes the instance over (instance->owner becomes the discovery) and calls its start(). source:
 * the number of the instance in the targets, used by no other. 0, or -errno with one malloc'ed
 * sentence in *text (NULL: no memory for it); the instance is then the caller's again. */
int discovery_new(struct discovery **ret, struct discovery_context *, struct fusee_instance *,
		  uint32_t source, char **text);
/* Frees the instance, which ends its threads, and removes its targets. NULL is fine. */
void discovery_free(struct discovery *);
/* The instance subscribed to process events. */
bool discovery_has_process(const struct discovery *);
/* Calls process(). 0 or -errno; the error is counted and logged. */
int discovery_process(struct discovery *, const struct fusee_process_event *);
/* Counts and logs an error that prevented process events: -errno, one sentence. */
void discovery_process_failed(struct discovery *, int err, const char *sentence);
const struct fusee_instance *discovery_instance(const struct discovery *);
uint32_t discovery_source(const struct discovery *); /* its number in the targets */
/* The instance has committed at least once. */
bool discovery_synced(const struct discovery *);
/* Publishes targets that the instance has put but not committed. */
void discovery_publish(struct discovery *);
/* The number of targets that the instance has put. */
uint32_t discovery_targets(const struct discovery *);
/* Adds its callbacks to the metrics, to which else they are added once a second. */
void discovery_count(struct discovery *);
/* The sentence of the callback that failed last; "" if that callback has succeeded since. */
const char *discovery_error(const struct discovery *);
#endif
