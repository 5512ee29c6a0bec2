/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What discovery plugins found at one time: the names of units, pods and containers, and the labels
 * of processes. The plugins have ended when found_new() returns. One thread.
 */
#ifndef SELECTION_FOUND_H
#define SELECTION_FOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "target/target.h"

struct found;
struct plugin_folder;

enum name_kind { NAME_UNIT, NAME_POD, NAME_CONTAINER, NAME_KINDS };

/* Borrowed for the call. */
struct found_options {
	bool kinds[NAME_KINDS]; /* whose default plugins run */
	/* The plugin of control groups runs, if it is installed: labels that need no daemon. */
	bool groups;
	/* Plugins with options, in the form of plan_flags.discoveries; each replaces the default
	 * plugin of its name. */
	const char *const *discover;
	uint32_t ndiscover;
	uint64_t wait_ns; /* the longest wait for the plugins */
};

/* Runs the plugins of the folder; NULL: the default folder. 0, or an exit code of sysexits.h after
 * one error or more were logged. What fails while it runs is logged as a warning. */
int found_new(struct found **ret, const struct found_options *, const struct plugin_folder *);
void found_free(struct found *); /* NULL is fine */
/* Calls each() for the names of this kind, sorted and each once: "ssh.service", "shop/web-1",
 * "db". 0 or -ENOMEM. */
int found_names(const struct found *, enum name_kind, void (*each)(void *arg, const char *name),
		void *arg);
/* Plugins that could not be started, or found nothing in time. */
uint32_t found_failed(const struct found *);
struct targets *found_targets(struct found *); /* borrowed */
#endif
